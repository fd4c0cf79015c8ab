"""The Space of the metric prompt_sensitivity: paste rows, read the scores."""

from judgesense.metric_modules.app import interface

demo = interface("prompt_sensitivity", __file__)

if __name__ == "__main__":
    demo.launch()
