"""The Space of the metric position_bias: paste rows, read the scores."""

from judgesense.metric_modules.app import interface

demo = interface("position_bias", __file__)

if __name__ == "__main__":
    demo.launch()
