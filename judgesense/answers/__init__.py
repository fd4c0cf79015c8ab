"""From generated text to a raw decision: ``parse(text, options)``.

`reader.parse` reads a text in this order; the first step that finds a verdict decides:

1. the whole text is an option, whatever its case and markup;
2. structured answers: JSON fields and markers such as ``[[A]]`` (`structured`);
3. the last sentence, where it calls itself the final verdict (`ending`);
4. what the sentences say: choices between candidates (`choices`), scores (`scores`) or one of the
   labels (`labels`); or else the last sentence, where it is a verdict and nothing more.

Quotations and repeated instructions are left out before (`quotations`), and where the judge thinks
again, only what follows counts.

`space` compiles the patterns of a decision space, `text` cleans and splits the text.
"""

from judgesense.answers.reader import parse

__all__ = ["parse"]
