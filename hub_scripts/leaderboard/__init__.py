"""The leaderboard: a folder of static pages, written from runs whose figures were recomputed.

`runs` finds runs, `rows` makes one ranked list of rows of their reports, and `site` writes the
pages: for a static Space on the Hub, for `judgesense leaderboard`, or to open as files.
"""
