"""From a decision log to what a person may conclude: checks, figures, sentences, next steps."""
