"""Recipes: how a judge is asked and how its answers become a verdict."""
