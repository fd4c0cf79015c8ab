"""The Space of the metric jss: paste rows, read the scores."""

import gradio as gr

import judgesense
from judgesense.hub_metric import card, parse_rows

EXAMPLE = """\
item-1,YES,YES
item-1,YES,NO
item-2,NO,NO
item-2,NO,NO
item-3,YES,YES
item-3,UNCLEAR,YES
"""


def compute(rows, interval):
    """Score the pasted rows."""
    try:
        table = parse_rows(rows)
        if len(table[0]) != 3:
            raise ValueError("give three cells a line: item, first decision, second decision")
        items, first, second = (list(column) for column in zip(*table, strict=True))
        return judgesense.jss(second, first, items, interval=interval).to_dict()
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    fn=compute,
    inputs=[
        gr.Textbox(
            label="One pair a line: item, decision under prompt a, decision under prompt b",
            value=EXAMPLE,
            lines=8,
        ),
        gr.Radio(["wilson", "bootstrap"], value="wilson", label="Interval"),
    ],
    outputs=gr.JSON(label="Result"),
    title="Judge Sensitivity Score",
    article=card(__file__),
    api_name="compute",
    flagging_mode="never",
)

if __name__ == "__main__":
    demo.launch()
