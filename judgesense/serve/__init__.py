"""``judgesense serve``: any judge over HTTP."""
