"""The Space of the metric ranking_stability: paste rows, read the scores."""

from judgesense.metric_modules.app import interface

demo = interface("ranking_stability", __file__)

if __name__ == "__main__":
    demo.launch()
