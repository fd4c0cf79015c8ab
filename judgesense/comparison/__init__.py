"""Two results side by side: judges, versions, systems; and scores corrected by people's labels."""
