"""The Space of the metric prompt_sensitivity: paste rows, read the scores."""

import gradio as gr

import judgesense
from judgesense.hub_metric import card, parse_numbers, parse_rows

EXAMPLE = """\
llama,0.61,0.58,0.64
qwen,0.70,0.71,0.66
gemma,0.55,0.57,0.52
"""


def compute(rows):
    """Score the pasted rows."""
    try:
        table = parse_rows(rows)
        scores = parse_numbers([row[1:] for row in table])
        return judgesense.prompt_sensitivity(scores, models=[row[0] for row in table]).to_dict()
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    fn=compute,
    inputs=[
        gr.Textbox(
            label="One model a line: its name, then its accuracy under each prompt",
            value=EXAMPLE,
            lines=8,
        ),
    ],
    outputs=gr.JSON(label="Result"),
    title="Prompt sensitivity",
    article=card(__file__),
    api_name="compute",
    flagging_mode="never",
)

if __name__ == "__main__":
    demo.launch()
