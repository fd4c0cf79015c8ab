"""The Space of the metric position_bias: paste rows, read the scores."""

import gradio as gr

import judgesense
from judgesense.hub_metric import card, parse_rows

EXAMPLE = """\
A,B
A,A
B,A
A,B
TIE,A
"""


def compute(rows, labels):
    """Score the pasted rows."""
    try:
        table = parse_rows(rows)
        if len(table[0]) != 2:
            raise ValueError("give two cells a line: decision in order AB, decision in order BA")
        first, swapped = (list(column) for column in zip(*table, strict=True))
        return judgesense.position_bias(swapped, first, labels=labels).to_dict()
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    fn=compute,
    inputs=[
        gr.Textbox(
            label="One pair a line: decision in order AB, decision in order BA",
            value=EXAMPLE,
            lines=8,
        ),
        gr.Radio(["position", "item"], value="position", label="What A and B name"),
    ],
    outputs=gr.JSON(label="Result"),
    title="Position bias",
    article=card(__file__),
    api_name="compute",
    flagging_mode="never",
)

if __name__ == "__main__":
    demo.launch()
