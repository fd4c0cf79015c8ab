"""The Space of the metric paraphrase_robustness: paste rows, read the scores."""

import gradio as gr

import judgesense
from judgesense.hub_metric import card, parse_numbers, parse_rows

EXAMPLE = """\
4,4,4,5
2,2,3,2
5,5,5,5
3,2,3,3
1,1,1,1
"""


def compute(rows, tolerance, round_references):
    """Score the pasted rows."""
    try:
        table = parse_numbers(parse_rows(rows))
        return judgesense.paraphrase_robustness(
            [row[1:] for row in table],
            [row[0] for row in table],
            tolerance=tolerance,
            round_references=round_references,
        ).to_dict()
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    fn=compute,
    inputs=[
        gr.Textbox(
            label="One item a line: human score, then the judge's score under each paraphrase",
            value=EXAMPLE,
            lines=8,
        ),
        gr.Number(value=0.5, minimum=0, label="Tolerance"),
        gr.Checkbox(label="Round human scores to whole ones"),
    ],
    outputs=gr.JSON(label="Result"),
    title="Paraphrase robustness",
    article=card(__file__),
    api_name="compute",
    flagging_mode="never",
)

if __name__ == "__main__":
    demo.launch()
