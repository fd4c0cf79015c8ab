"""The Space of the metric paraphrase_robustness: paste rows, read the scores."""

from judgesense.metric_modules.app import interface

demo = interface("paraphrase_robustness", __file__)

if __name__ == "__main__":
    demo.launch()
