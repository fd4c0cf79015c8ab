"""Forms of real judges' answers that are easy to misread, thirty phrasings of each."""

from __future__ import annotations

import json

import pytest

from judgesense.answers import parse
from judgesense.tasks import UNCLEAR

AB, ONE_TWO, ABC = ("A", "B"), ("1", "2"), ("A", "B", "C")
YES_NO = ("YES", "NO")
ABCD = ("A", "B", "C", "D")
FIVE, TEN = tuple("12345"), tuple(map(str, range(1, 11)))
SEVERITY = ("none", "low", "medium", "high")


def reply(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


SEVERAL_SCORES = [
    ("<answer>6</answer><answer>1</answer>", TEN),
    ("<answer>6</answer>\n<answer>1</answer>", TEN),
    ("<score>3</score> <score>5</score>", FIVE),
    ("<rating>2</rating><rating>4</rating><rating>5</rating>", FIVE),
    ("[[4]] [[2]]", FIVE),
    ("[[7]]\n[[9]]", TEN),
    ("Assistant A: [[8]]\nAssistant B: [[3]]", TEN),
    ("Helpfulness: [[4]]\nAccuracy: [[2]]", FIVE),
    ("Response 1 gets [[5]] and Response 2 gets [[1]].", FIVE),
    ("\\boxed{3} and \\boxed{5}", FIVE),
    ("\\boxed{1}\n\\boxed{4}", FIVE),
    ("[RESULT] 4\n[RESULT] 2", FIVE),
    ("[SCORE] 1 [SCORE] 5", FIVE),
    ("Score: 6\nScore: 1", TEN),
    ("Rating: 2\nRating: 5", FIVE),
    ("8 3", TEN),
    ("8, 3", TEN),
    ("4/5, 2/5", FIVE),
    ("Clarity: 4\nAccuracy: 2\nStyle: 5", FIVE),
    ("Clarity: 4/5\nAccuracy: 2/5\nStyle: 5/5", FIVE),
    ("Assistant 1: 9\nAssistant 2: 6", TEN),
    ("The first response scores 7 and the second scores 3.", TEN),
    ("I would give Response A a 4 and Response B a 2.", FIVE),
    ("**Relevance:** 3\n**Fluency:** 5\n**Depth:** 1", FIVE),
    ("- Helpfulness: 8/10\n- Safety: 2/10", TEN),
    (reply(score=4) + "\n" + reply(score=2), FIVE),
    (reply(helpfulness=4, accuracy=2), FIVE),
    (reply(a={"score": 8}, b={"score": 3}), TEN),
    ("```json\n" + json.dumps([{"score": 5}, {"score": 1}]) + "\n```", FIVE),
    ("#### 3\n#### 5", FIVE),
]

ONLY_A_DENIAL = [
    ("Response 2 is incorrect because it names the wrong year.", ONE_TWO),
    ("Response 1 is incorrect.", ONE_TWO),
    ("Response A is wrong because Canberra is the capital.", AB),
    ("Output (a) is not helpful at all, since it ignores the question.", AB),
    ("Assistant B's answer is inaccurate and misses the point.", AB),
    ("Response B fails to follow the instruction.", AB),
    ("Answer A does not answer the query.", AB),
    ("Passage B is irrelevant to the query.", AB),
    ("Passage A isn't relevant.", AB),
    ("I would reject A.", AB),
    ("I would not choose Response 2.", ONE_TWO),
    ("I can't recommend Output (b).", AB),
    ("A is not the better answer.", AB),
    ("Response 1 is worse.", ONE_TWO),
    ("Response B is the weaker one.", AB),
    ("The second response is incorrect, as water boils at 100 degrees.", ONE_TWO),
    ("The first answer is false.", AB),
    ("Option B contains a factual error: Einstein did not invent the telephone.", AB),
    ("Output (b) is terrible.", AB),
    ("Response 2 hallucinates a source.", ONE_TWO),
    ("Response 2 is misleading because it leaves out the context.", ONE_TWO),
    ("Model A gives an incorrect explanation.", AB),
    ("Candidate 1's code does not compile.", ONE_TWO),
    ("Option D is wrong.", ABCD),
    ("B is incorrect.", ABCD),
    ("It is definitely not C.", ABCD),
    ("A: wrong.", AB),
    ("Response A lacks detail and never cites the text.", AB),
    ("Neither A nor C can be right.", ABCD),
    ("Summary A is less coherent.", AB),
]

CHOOSE = "Choose the better response.\nA: the first response\nB: the second response\n"
LISTED = "Options:\nA) gravity\nB) friction\nC) magnetism\nD) drag\n"
RATE = "Rate from 1 to 5:\n1: terrible\n2: poor\n3: fair\n4: good\n5: excellent\n"
GARBAGE = ("", "\n\n\n", "@@@ ###", "lorem ipsum dolor", "the the the the", "</s>", "...")
ECHO_ALONE = [
    *[(CHOOSE + rest, AB) for rest in GARBAGE],
    *[(LISTED + rest, ABCD) for rest in GARBAGE],
    *[(RATE + rest, FIVE) for rest in GARBAGE],
    ("A: gravity\nB: friction\nC: magnetism\nD: drag", ABCD),
    ("1. gravity\n2. friction\n3. magnetism\n4. drag", ("1", "2", "3", "4")),
    ("Answer YES or NO.", YES_NO),
    ("Answer with A or B:", AB),
    ("[[A]] if assistant A is better, [[B]] if assistant B is better", AB),
    ("- YES: the response is correct\n- NO: the response is not correct", YES_NO),
    ("YES: correct\nNO: incorrect\n", YES_NO),
    ("Output (a): The cat sat.\nOutput (b): The dog ran.", AB),
    ("Please respond with a number from 1 to 5.", FIVE),
]
ECHO_THEN_VERDICT = [
    (CHOOSE + "Answer: B", AB, "B"),
    (CHOOSE + "B", AB, "B"),
    (CHOOSE + "\nA", AB, "A"),
    (CHOOSE + "The better response is A.", AB, "A"),
    (CHOOSE + "I choose B because it is complete.", AB, "B"),
    (CHOOSE + "[[A]]", AB, "A"),
    (CHOOSE + "Verdict: B", AB, "B"),
    (CHOOSE + "Response A is better.", AB, "A"),
    (CHOOSE + "**B**", AB, "B"),
    (CHOOSE + reply(verdict="A"), AB, "A"),
    (LISTED + "Answer: C", ABCD, "C"),
    (LISTED + "The answer is B.", ABCD, "B"),
    (LISTED + "D", ABCD, "D"),
    (LISTED + "(C)", ABCD, "C"),
    (LISTED + "\nFinal answer: A", ABCD, "A"),
    (LISTED + "I would choose option D.", ABCD, "D"),
    (LISTED + "B is correct.", ABCD, "B"),
    (LISTED + "\\boxed{A}", ABCD, "A"),
    (RATE + "Rating: 4", FIVE, "4"),
    (RATE + "4", FIVE, "4"),
    (RATE + "I would give it a 2.", FIVE, "2"),
    (RATE + "Score: 3/5", FIVE, "3"),
    (RATE + "[[5]]", FIVE, "5"),
    (RATE + "<answer>1</answer>", FIVE, "1"),
    ("Answer YES or NO.\nYES", YES_NO, "YES"),
    ("Answer YES or NO.\nAnswer: NO", YES_NO, "NO"),
    ("YES: correct\nNO: incorrect\n\nNO", YES_NO, "NO"),
    ("Is it true? Answer YES or NO.\nThe answer is YES.", YES_NO, "YES"),
    ("Answer with A or B:\nB", AB, "B"),
    ("Output (a): The cat sat.\nOutput (b): The dog ran.\nOutput (b) is better.", AB, "B"),
]

LONG = "The high number of low-level errors is none of the medium concerns raised before; "
JSON_FIELD = [
    (reply(severity="low", explanation=LONG * 2), SEVERITY, "low"),
    (reply(explanation=LONG, severity="high"), SEVERITY, "high"),
    (reply(severity="none", rationale="A high-severity leak would be worse."), SEVERITY, "none"),
    (reply(risk="medium", why="not low, not high"), SEVERITY, "medium"),
    (reply(schweregrad="low", begründung="Kein high, nur ein kleiner Fehler."), SEVERITY, "low"),
    (reply(gravité="high", explication="Ce n'est pas low du tout."), SEVERITY, "high"),
    (reply(gravedad="none", motivo="No hay nada high ni medium aquí."), SEVERITY, "none"),
    (reply(重大度="medium", 理由="high と low の間です。"), SEVERITY, "medium"),
    (reply(严重程度="low", 原因="不是 high，也不是 medium。"), SEVERITY, "low"),
    (reply(심각도="high", 이유="low 라고 볼 수 없습니다."), SEVERITY, "high"),
    (reply(серьёзность="none", причина="Ни high, ни low."), SEVERITY, "none"),
    (reply(gravidade="medium", justificativa="Nem low nem high."), SEVERITY, "medium"),
    (reply(ernst="low", toelichting="Niet high."), SEVERITY, "low"),
    (reply(الخطورة="high", السبب="ليست low"), SEVERITY, "high"),
    (reply(analysis="Response A is better in parts.", vote="B"), AB, "B"),
    (reply(comparaison="A est plus clair, B plus juste.", vainqueur="B"), AB, "B"),
    (reply(vergleich="B ist länger als A.", sieger="A"), AB, "A"),
    (reply(fazit="A ist besser begründet", wahl="A", note_b="B hat Fehler"), AB, "A"),
    (reply(比較="A は短い。B は詳しい。", 勝者="B"), AB, "B"),
    (reply(thoughts="YES would be wrong here, since NO source is given", ok="NO"), YES_NO, "NO"),
    (reply(erklärung="NO wäre zu streng.", richtig="YES"), YES_NO, "YES"),
    (reply(explicación="NO es correcto decir YES siempre.", correcto="YES"), YES_NO, "YES"),
    (reply(commentaire="On dirait 2 au plus, mais 4 mérite discussion.", points=3), FIVE, "3"),
    (reply(kommentar="Zwischen 1 und 5 gibt es viel Platz.", bewertung_text="4"), FIVE, "4"),
    (reply(feedback="I counted 5 errors and 2 typos.", level="1"), FIVE, "1"),
    ("```json\n" + reply(severity="low", explanation=LONG) + "\n```", SEVERITY, "low"),
    ("Here is my verdict:\n" + reply(severity="high", note=LONG), SEVERITY, "high"),
    (reply(result={"severity": "medium", "text": LONG}), SEVERITY, "medium"),
    (reply(id="case-7", severity="LOW", explanation=LONG), SEVERITY, "low"),
    ('{"severity": "low", "explanation": "It was cut off while the high', SEVERITY, "low"),
]

FIRST_LINE = [
    ("C: Neither is significantly better. Both cite the text. Therefore, neither wins.", ABC, "C"),
    ("C: Both are equally good.\n\nA is clear, B is complete. So neither stands out.", ABC, "C"),
    ("C. Neither response is significantly better.\nA is short. B is long. So neither.", ABC, "C"),
    ("C) Tie. The two say the same. In the end neither is preferable.", ABC, "C"),
    ("(C) Neither is better. Response A has a typo and so does B.", ABC, "C"),
    ("**C**: Neither is better.\n\nBoth outputs follow the instruction.", ABC, "C"),
    ("C - neither is significantly better. A cites a source; B gives an example.", ABC, "C"),
    ("C, because neither is better. A and B both miss the second part.", ABC, "C"),
    ("C\nNeither is significantly better. Therefore, neither response wins.", ABC, "C"),
    ("C\n\nBoth responses are correct. Overall, neither is clearly preferable.", ABC, "C"),
    ("C: The responses tie. A has style, B has substance. Overall they are equal.", ABC, "C"),
    ("C: There is no significant difference. Thus it does not matter which.", ABC, "C"),
    ("A: The first is significantly better. B repeats itself and then stops.", ABC, "A"),
    ("A: The first is better. It names the year. The other one does not name it.", ABC, "A"),
    ("A. It is complete. The second leaves out the date and never explains why.", ABC, "A"),
    ("B: The second is significantly better. It answers. The first only asks back.", ABC, "B"),
    ("B. It follows the instruction. The first one writes a poem instead of a list.", ABC, "B"),
    ("B) The second response is clearer. The first is vague about the cause.", ABC, "B"),
    ("B\n\nThe second response answers all parts. The first stops early.", AB, "B"),
    ("A\n\nThe first response gives sources, and the second gives none.", AB, "A"),
    ("A: It is correct. Therefore the other one, which says 1912, is not.", AB, "A"),
    ("B: It is concise. The other response repeats the question twice.", AB, "B"),
    ("B, since it is correct. Both are polite, and both are short.", AB, "B"),
    ("[B] It is correct. The first one has the wrong date.", AB, "B"),
    ("D: None of the above. Gravity does not act sideways. Friction is too weak.", ABCD, "D"),
    ("D. It is the only one with a unit. The others are plain numbers.", ABCD, "D"),
    ("NO: The response says Sydney. Canberra is the capital, so it is mistaken.", YES_NO, "NO"),
    ("YES: All claims are supported. The date is right and the name too.", YES_NO, "YES"),
    ("NO. The source does not say that. It only mentions a survey.", YES_NO, "NO"),
    ("YES. The answer is complete. It could cite more, though that is minor.", YES_NO, "YES"),
]  # fmt: skip

CONTRADICTION = [
    ("My verdict on Assistant B's answer: [[A>>B]]\nB's answer is significantly better.", AB),
    ("[[A]] Response B is clearly better.", AB),
    ("[[B]]\n\nOverall, Assistant A is the better one.", AB),
    ("[[A]]\nTherefore, B is better.", AB),
    ("Final verdict: [[A>B]]. B is the better answer.", AB),
    ("Verdict: A\n\nIn conclusion, Response B is better.", AB),
    ("The winner is A. Therefore I choose B.", AB),
    ("Answer: B\nSo the better response is A.", AB),
    ("A\n\nFinal answer: B", AB),
    ("B\n\nTherefore, output (a) is better.", AB),
    ("I choose A. I choose B.", AB),
    ("The answer is A. The answer is B.", AB),
    ("Response 1 is better. Overall, Response 2 is better.", ONE_TWO),
    ("[[1]] Response 2 is clearly the better one.", ONE_TWO),
    ("Output (a) is better.\nIn conclusion, Output (b) is better.", AB),
    ("[[B>A]] Overall, A is better than B.", AB),
    ("**A** is the winner. To conclude, B wins.", AB),
    ("Verdict: [[B]]. Assistant A's answer is significantly better.", AB),
    ("My choice is [[A>>B]] because Assistant B's answer is much better than A's.", AB),
    ("YES. The answer is NO.", YES_NO),
    ("No.\n\nFinal answer: Yes", YES_NO),
    ("YES\n\nTherefore, the answer is NO.", YES_NO),
    ("Verdict: YES\nConclusion: NO", YES_NO),
    ("Final rating: 2\n\nTherefore, I would give it a 5.", FIVE),
    ("4\n\nTherefore the final score is 1.", FIVE),
    ("5\n\nFinal rating: 2/5", FIVE),
    ("[[2]]\nOverall rating: 5/5", FIVE),
    (reply(verdict="A") + "\nOverall, Response B is better.", AB),
    (reply(winner="B") + "\n\nTherefore, Response A is the better response.", AB),
    ("<answer>A</answer> So the better response is B.", AB),
]


@pytest.mark.parametrize(
    ("text", "options"), [*SEVERAL_SCORES, *ONLY_A_DENIAL, *ECHO_ALONE, *CONTRADICTION]
)
def test_a_text_without_one_verdict_is_unclear(text: str, options: tuple[str, ...]) -> None:
    assert parse(text, options) == UNCLEAR


@pytest.mark.parametrize(
    ("text", "options", "verdict"), [*ECHO_THEN_VERDICT, *JSON_FIELD, *FIRST_LINE]
)
def test_the_verdict_that_a_text_states_is_read(
    text: str, options: tuple[str, ...], verdict: str
) -> None:
    assert parse(text, options) == verdict
