"""The Space of the metric answer_match: paste rows, read the scores."""

import gradio as gr

import judgesense
from judgesense.hub_metric import card, parse_rows

EXAMPLE = """\
"The answer is (B).",B
"I would pick C, because water boils at 100 degrees.",C
"None of these is right.",A
"""


def compute(rows, method):
    """Score the pasted rows."""
    try:
        table = parse_rows(rows)
        if len(table[0]) != 2:
            raise ValueError("give two cells a line: response, answer; quote cells with commas")
        responses, answers = (list(column) for column in zip(*table, strict=True))
        return judgesense.answer_match(responses, answers, method).to_dict()
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    fn=compute,
    inputs=[
        gr.Textbox(
            label='One response a line: "response", answer',
            value=EXAMPLE,
            lines=8,
        ),
        gr.Radio(["choice", "f1", "math", "exact"], value="choice", label="Method"),
    ],
    outputs=gr.JSON(label="Result"),
    title="Answer match",
    article=card(__file__),
    api_name="compute",
    flagging_mode="never",
)

if __name__ == "__main__":
    demo.launch()
