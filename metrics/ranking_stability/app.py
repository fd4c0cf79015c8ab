"""The Space of the metric ranking_stability: paste rows, read the scores."""

import gradio as gr

import judgesense
from judgesense.hub_metric import card, parse_numbers, parse_rows

EXAMPLE = """\
0.20,0.50,0.40,0.44
0.30,0.40,0.50,0.45
0.10,0.60,0.50,0.43
"""


def compute(rows, k, z):
    """Score the pasted rows."""
    try:
        return judgesense.ranking_stability(
            parse_numbers(parse_rows(rows)), k=int(k), z=z
        ).to_dict()
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    fn=compute,
    inputs=[
        gr.Textbox(
            label="One condition (seed, subset) a line: the score of each prompt",
            value=EXAMPLE,
            lines=8,
        ),
        gr.Number(value=3, minimum=1, precision=0, label="k of top-k"),
        gr.Number(value=1.0, minimum=0, label="z of the lower confidence bound"),
    ],
    outputs=gr.JSON(label="Result"),
    title="Ranking stability",
    article=card(__file__),
    api_name="compute",
    flagging_mode="never",
)

if __name__ == "__main__":
    demo.launch()
