"""The Space of the metric answer_match: paste rows, read the scores."""

from judgesense.metric_modules.app import interface

demo = interface("answer_match", __file__)

if __name__ == "__main__":
    demo.launch()
