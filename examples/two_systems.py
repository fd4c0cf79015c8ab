"""Write verdicts of a simulated judge that favours system x, and labels that say y is better."""

import csv
import random

rng = random.Random(5)
with open("verdicts.csv", "w") as verdicts, open("people.csv", "w") as people:
    verdict_rows, label_rows = csv.writer(verdicts), csv.writer(people)
    verdict_rows.writerow(["item_id", "system_id", "wording", "verdict"])
    label_rows.writerow(["item_id", "system_id", "label"])
    for item in range(300):
        for system, liked in (("x", 0.95), ("y", 0.05)):
            good = rng.random() < (0.6 if system == "x" else 0.7)  # y is better
            if item < 80:
                label_rows.writerow([item, system, "YES" if good else "NO"])
            for wording in ("w1", "w2", "w3"):
                yes = good if rng.random() < 0.8 else rng.random() < liked  # the judge likes x
                verdict_rows.writerow([item, system, wording, "YES" if yes else "NO"])
