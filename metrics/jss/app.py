"""The Space of the metric jss: paste rows, read the scores."""

from judgesense.metric_modules.app import interface

demo = interface("jss", __file__)

if __name__ == "__main__":
    demo.launch()
