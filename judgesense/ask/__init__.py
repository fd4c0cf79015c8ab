"""How to ask a judge: the search for a better recipe, its promise and its file."""
