"""What judges write around a choice between candidates, as phrases.

In a pattern, ``X`` is the candidate that is chosen and ``Y`` any candidate; both are the
private-use characters that `space` puts in place of names such as "Output (a)".
"""

from __future__ import annotations

import re

from judgesense.answers.space import NOUN


def one_of(*lines: str) -> str:
    """A pattern for any of the phrases, separated by ``|``; a space is any white space."""
    text = re.sub(r"\s*\|\s*", "|", " | ".join(line.strip(" |") for line in lines))
    return "(?:" + text.replace(" ", r"\s+") + ")"


def pattern(text: str) -> re.Pattern[str]:
    """The compiled pattern, whatever the case."""
    return re.compile(text, re.IGNORECASE)


TOKENS = "\ue000-\uf8ff"
X, Y = f"([{TOKENS}])", f"[{TOKENS}]"
BLANK = "[^\\w\ue000-\uf8ff]*"
_OPEN = "(?:(?:number|no\\.)\\s+)?[(\\[\"'“]*"

_ADVERB = one_of(
    "(?!hard|bare|scarce|rare|supposed|alleged|possib|reported|seeming|initial|former|previous)\\w+ly",
    "also | much | somewhat | overall | still | therefore | thus | indeed | by far | far | a bit",
    "a little | perhaps | considered | deemed | judged | rated | just | to be | the one that is",
)
_ADVERBS = rf"(?:\s*,?\s*{_ADVERB}\s*,?)*\s+"
_DEGREE = one_of("clear | clearly | overall | far | much | slightly | obvious | most | more | only")
_BETTER = one_of(
    "better | best | superior | preferable | preferred | stronger | strongest | favou?red",
    "winner | winning | top choice",
    "one to (?:choose|pick|send|use|take|go with|publish|keep|deploy|ship|prefer)",
    "(?:right|correct|better) (?:choice|answer|response|one|option|output|pick)",
)
_IS = one_of(
    "is | was | are | seems | appears | looks | remains | would | will | should | must | might",
    "may | could | does | did | can | has(?= been| to be) | be | been | being | comes? out",
    "stands? out",
    "ends? up | proves | turns? out",
)
_BEING = rf"(?:\s+{_IS}|['’]s)+(?:\s+as)?"
_WINS = one_of(
    "deserves (?:the|a|my) (?:win|point|nod|vote|edge)",
    "deserves to win | (?:persuades|convinces) me | wins | won | outperforms | outshines",
    "outdoes | trumps | has it(?=\\W*$) | surpasses | outclasses | is (?:\\w+ly )?ahead | beats",
    "edges (?:out|ahead|it) | prevails",
    "takes (?:the (?:win|lead|edge)|it) | gets my (?:vote|pick|preference)",
    "ha(?:s|ving) (?:the|an?) (?:\\w+ )?(?:edge|advantage|upper hand|lead)",
    "c[oa]mes? out (?:ahead|on top|best|first|the winner)",
    "(?:is|would be|will be|remains) (?:my|the) (?:\\w+ )?(?:choice|pick|preference|answer"
    "|selection|decision|verdict|recommendation|favou?rite)",
    "should (?:win|be (?:chosen|selected|preferred|picked))",
    "does (?:a better job|better) | performs better | is more preferable",
)
_PICK = one_of(
    "choos(?:e|ing) | chose | ha(?:ve|d) chosen | select(?:ed|ing)? | pick(?:ed|ing)?",
    "prefer(?:red)? | favou?r(?:ed)? | go(?:ing)? (?:with|for) | went with | opt(?:ed|ing)? for",
    "vot(?:e|ed|ing) (?:for|goes to|is for)",
    "giv(?:e|ing) (?:\\w+ ){1,2}?(?:edge|nod|win|point|vote|preference|advantage) to",
    "happier with | inclined (?:towards?|to) | lean(?:ing)? (?:slightly |more )?(?:towards?|to)",
    "side with | recommend",
    "stick(?:ing)? with | stay(?:ing)? with | stand(?:ing)? by | settl(?:e|ing) (?:on|for)",
    "in favou?r of | would (?:take|want|rather \\w+) | (?<=['’])d (?:take|want)",
)
_FILLER = one_of(
    "is | would be | for | the | to | slightly | more | that | choose | pick | select | option",
    "choice",
)
_KIND = one_of(
    "revised | updated | corrected | amended | adjusted",
    "better | best | winning | preferred | superior | stronger | preferable | chosen | selected",
    r"right | correct | final | my | overall | (?:more|most|less|least) \w+",
)
_NAME = one_of(
    NOUN,
    "one | choice | option | answer | verdict | selection | pick | winner | preference",
    "decision | judge?ment | conclusion | vote | result | better | best | edge | nod | win",
    "preferred",
    "victory",
)
_SETTING = one_of(
    "here | for me | overall | between the two | of the two | in this case",
)
_COPULA = one_of(
    "is | was | would be | will be | must be | should be | goes to | has to be | remains | for",
)
_LABEL = (
    rf"\b(?:{_KIND}\s+)*(?:{_NAME}\b\s*){{1,2}}(?:\s*{_SETTING})?"
    rf"\s*(?:{_COPULA}\s*(?:that\s+)?:?|[:=]|->|→)\s*(?:(?:therefore|clearly|the|for|with)\s+)?"
)

_ASIDE = rf"(?:,[^,.;{TOKENS}]{{1,60}},)?"
IS_BETTER = pattern(
    rf"{X}(?:['’]s\s+{NOUN})?{_ASIDE}{_BEING}{_ADVERBS}(?:(?:the|a)\s+)?(?:{_DEGREE}\s+)*{_BETTER}\b"
    rf"(?!\s+\w+(?:ed|en|ten)\b|\s+than\s+(?!{Y}|(?:the\s+)?(?:other|alternative|former|latter|first|second|competing|rival|its)\b|that\b))"
)
_DECIDES = one_of(
    "(?:wins|carries|saves) the day | tips the (?:scales?|balance) | makes the difference",
    "(?:decides|settles|clinches) it",
)
WINS = pattern(
    rf"{X}\s+(?:(?:clearly|easily|narrowly|ultimately)\s+)?{_WINS}\b"
    rf"|{X}(?:['’]s\s+(?:\w+\s+){{1,3}}|\s+){_DECIDES}\b"
)
PICKED = pattern(
    rf"\b{_PICK}(?:\s+{_FILLER})*\s*:?\s*(?:(?:the\s+(?:{NOUN}|one)|that)\s+(?:\w+\s+)?(?:from|by|of)\s+)?{_OPEN}{X}"
)
FIELD = pattern(
    rf"^{BLANK}(?!(?:worse|worst|weaker|weakest|loser|last|second|rejected|runner|bottom)\b)"
    rf"[^\W\d]\w{{1,29}}\s*:\s*{_OPEN}{X}{BLANK}$"
)
LABELLED = pattern(rf"{_LABEL}{_OPEN}{X}")
OVER = pattern(rf"(?<![>≻]\s){X}\s*(?:>{{1,3}}|≻|over)\s*{Y}(?!\s*[>≻])")
_OFFERS = one_of(
    "gave | gives | given | provided | provides | offered | offers | wrote | writes | has | had",
    "presents? | presented | produced | produces | delivers? | delivered | contains | made",
)
GIVES_BETTER = pattern(
    rf"{X}\s+(?:(?:\w+ly|who|which|that|also|overall|still|therefore|thus|has|have)\s+)*{_OFFERS}\s+(?:us\s+)?"
    rf"(?:the|a|an)\s+(?:{_DEGREE}\s+)*(?:better|best|superior|stronger|preferable|winning)\b"
    rf"(?!\s+(?!overall\b|one\b|of\b|here\b|{NOUN}\b)[a-z])"
    rf"|\b(?:I|we)\s+(?:\w+\s+)?(?:judge|consider|find|found|deem|rate)\s+(?:the\s+)?(?:{NOUN}\s+(?:\w+\s+)?(?:from|by|of)\s+)?{X}"
    rf"(?:['’]s\s+{NOUN})?\s+(?:to\s+be\s+)?(?:the\s+)?"
    r"(?:better|best|superior|stronger|(?:more|most)\s+\w+)\b"
)
BETTER_IS_FROM = pattern(
    rf"\b(?:better|best|superior|stronger|preferable|preferred|winning|(?:more|most)\s+\w+(?=\s+(?:of|{NOUN}|one|is)\b))\s+"
    rf"(?:of\s+(?:(?:the|these)\s+(?:\w+\s+){{1,4}}|them\s+))?"
    rf"(?:{_NAME}\s+)?(?:(?:overall|here)\s+)?"
    rf"(?:is|was|comes|came|would\s+be|has\s+to\s+be|must\s+be)\s+(?:therefore\s+|clearly\s+)?"
    rf"(?:the\s+(?:one|{NOUN})\s+|that\s+)?(?:which\s+(?:is|was)\s+|that\s+(?:is|was)\s+)?"
    rf"(?:(?:(?:given|provided|written|offered|produced|presented|made)\s+)?(?:from|by|of)\s+)?"
    rf"{_OPEN}{X}"
)
PREFERRED = pattern(
    rf"(?:\b(?:it\s+is|it['’]s)\s+{X}\s+(?:that|which|who)\s+|{X}(?:['’]s)?[^.;]{{0,20}}?\s+"
    r"(?:(?:which|who)\s+)?(?:is|as)\s+the\s+one\s+(?:that\s+|which\s+)?)"
    rf"(?:I|we)(?:['’]d|['’]ll|\s+would|\s+will)?\s+(?:\w+ly\s+)?{_PICK}".replace(
        "(?:with|for)", "with"
    )
    + rf"|{X}(?:['’]s\s+{NOUN})?\s+is\s+(?:what|the\s+one(?:\s+that|\s+which)?)\s+(?:I|we)"
    r"(?:['’]d|\s+would)\s+(?!not\b|never\b|\w+\s+(?:if|when|least)\b)\w+"
)
MAKES = pattern(
    r"\b(?:(?:that|this|which)\s+(?:makes|leaves|gives|means|points\s+to|brings)(?:\s+(?:it|me|us))?"
    r"(?:\s+(?:to|with|the\s+winner))?|(?:it|that|this)\s+(?:has\s+to|must|should|would)\s+be)"
    rf"\s+{_OPEN}{X}(?:['’]s)?(?={BLANK}$|,)|{X}\s+it\s+is(?={BLANK}$)"
    rf"|\b(?:so|hence|thus|therefore)[,:]?\s+{_OPEN}{X}(?={BLANK}$)"
)
AND_IS = pattern(
    rf"{X}{_BEING}\s[^.;{TOKENS}]{{1,80}}?(?:,|\band|\bso)\s+(?:so\s+)?(?:is|was)\s+(?:(?:therefore|thus|hence|so)\s+)?"
    rf"(?:to\s+be\s+)?(?:the\s+)?{_BETTER}(?!\s+(?:by|in|on|only|when|if|than)\b)"
    rf"|{X}['’]s\s+(?:(?!never\b|hardly\b|not\b)[\w-]+\s+){{1,3}}?(?:beats|outclasses|outperforms|outshines|trumps|surpasses)\s+(?:it|that|this|{Y})\b"
)
"""A choice after what speaks for it: "A is terse but correct, and is therefore preferred"."""
RANKED_FIRST = pattern(
    rf"\b(?:rate|rank|place|put|value)[sd]?\s+{X}(?:['’]s\s+{NOUN})?\s+(?:higher|above|ahead)\b|"
    rf"\b(?:rank|place|put)(?:s|ed|ing)?\s+{X}\s+(?:in\s+|at\s+)?(?:the\s+)?(?:first|1st|#1|top)\b"
    rf"|{X}\s+(?:is|comes|came|ranks?|ranked|(?:is|are)\s+(?:ranked|placed)|takes|finishes)\s+"
    r"(?:in\s+)?(?:the\s+)?(?:first|1st|#1|number\s+one|top)(?:\s+(?:place|spot|position|rank))?(?=\W|$)"
    rf"(?!\s+\w+\s+(?:in|to)\b)|{X}\s+in\s+(?:the\s+)?first\s+place"
    rf"|\bfirst\s+place\s*(?:goes\s+to|is|:|-|–)\s*{_OPEN}{X}"
)
NOT_BUT = pattern(rf"\bnot\s+{Y}\s*,?\s*but(?:\s+rather)?\s+{X}")
DOES_BETTER = pattern(
    rf"{X}\s+(?:\w+\s+){{1,8}}?better\s+(?:(?!\w+(?:ed|en)\s)\w+\s+){{0,3}}?than\s+{Y}"
    rf"|{X}\s+(?:(?:has|have)\s+)?{_OFFERS}\s+an?\s+(?:\w+\s+)?more\s+(?:\w+,?\s+){{1,5}}?than\s+{Y}"
)
_ARTICLE = r"(?:(?:die|der|das|den|la|le|el|il|a|o)\s+)?"
_BEFORE_ADJECTIVE = r"(?:(?!nicht|keine?|no|non|n[ãa]o|pas)\w+\s+){0,2}?"
ELSEWHERE_BETTER = pattern(
    rf"{X}\s+(?:ist|war|est|es|é|è)\s+{_BEFORE_ADJECTIVE}{_ARTICLE}"
    r"(?:besser\w*|beste|[üu]berlegen|st[äa]rker\w*|meilleure?|mejor|superior|melhor|migliore|лучше|beter|lepsz[aye])\b"
    rf"|{X}\s*(?:の(?:方|ほう)が|[がは가이은는更]|)\s*(?:より\s*)?(?:優れ|良い|よい|더\s*(?:낫|나은|좋|우수|적절)|更[好优佳]|较好|胜出|лучше\b)"
    rf"|{X}(?:\s+(?:gewinnt|gana|vince|ganha|vence|wint|vinner|vinder|wygrywa|побеждает|выигрывает|kazan[ıi]r)"
    r"|\s+(?:donne|propose|offre|gibt|liefert|bietet|da|ofrece|fornisce|dá|oferece|geeft|daje)\s+(?:\w+\s+)?"
    r"(?:meilleure?|besser\w*|beste|mejor|migliore|melhor|betere|lepsz[aąy])"
    r"|\s+l['’]emporte)(?!\s+(?:nicht|pas|niet))\b"
)
ELSEWHERE_PICKED = pattern(
    r"\b(?:(?:entscheide|w[üu]rde|werde)\s+(?:ich\s+)?mich(?:\s+\w+){0,2}\s+f[üu]r|w[äa]hle(?:\s+ich)?|bevorzuge"
    r"|je\s+(?:choisi(?:s|rais)|pr[ée]f[èe]re(?:rais)?|retiens|prends|vote\s+pour)|j['’]opte(?:rais)?\s+pour"
    r"|elijo|eleg[ií]r[ií]a|escojo|escoger[ií]a|prefiero|me\s+quedo\s+con|me\s+quedar[ií]a\s+con|voto\s+por"
    r"|opto\s+por|escolho|escolheria|prefiro|fico\s+com|scelgo|sceglierei|preferisco|preferirei|voto\s+per"
    r"|kies(?:\s+ik)?(?:\s+voor)?|ga\s+(?:ik\s+)?voor|wybieram|wybra[łl]a?bym|выбираю|выбрала?\s+бы|v[äa]ljer|velger|v[æe]lger"
    rf")\s+{_ARTICLE}{_OPEN}{X}"
)
"""Choices in German, French, Spanish, Portuguese and Italian."""
CHOSEN = (
    ELSEWHERE_BETTER,
    ELSEWHERE_PICKED,
    IS_BETTER,
    WINS,
    PICKED,
    FIELD,
    LABELLED,
    OVER,
    NOT_BUT,
    DOES_BETTER,
    GIVES_BETTER,
    BETTER_IS_FROM,
    PREFERRED,
    MAKES,
    AND_IS,
    RANKED_FIRST,
)
"""Each finds a candidate that is chosen."""

_WORSE = one_of(
    r"less \w+ | fewer \w+ | worse | inferior | weaker | poorer | not (?:quite |nearly )?as \w+",
)
IS_WORSE = pattern(
    rf"{Y}(?:{_BEING})?(?:\s+\w+){{0,6}}?\s+{_WORSE}\s*(?:\w+\s+){{0,3}}?"
    rf"(?:than|to|as|compared\s+(?:to|with))\s+{X}"
    rf"|{Y}(?:['’]s\s+{NOUN})?\s+(?:(?:is|was|does|do)n['’]t\s+(?:\w+\s+){{0,3}}?as\s+\w+\s+as"
    rf"|(?:falls?|fell|is)\s+(?:well\s+)?(?:short\s+of|behind|below|inferior\s+to))\s+{X}"
)
LOSES = pattern(
    rf"{Y}(?:['’]s\s+{NOUN})?\s+(?:(?:loses|lost|is\s+beaten|was\s+beaten)(?:\s+out)?\s+(?:to|by)|trails|lags\s+behind"
    rf"|(?:is|['’]s)\s+no\s+match\s+for|(?:can(?:no|['’])t|cannot|does(?:n['’]t|\s+not))\s+(?:compete|keep\s+up)\s+with)\s+{X}"
)
THAN_ANOTHER = pattern(rf"{Y}[^.;:,]{{1,40}}?(?<!not\s){Y}")
"""A candidate beside another, from where it is chosen: "B beats A"."""
BY_DENIAL = (IS_WORSE, LOSES)
"""Each finds a candidate that is chosen by calling the other one worse than it."""

IS_MORE = pattern(
    rf"{X}{_ASIDE}{_BEING}{_ADVERBS}(?:the\s+)?(?:more|most|closest|closer|better)(?=\s+\w)"
)

NEGATION = pattern(
    r"\b"
    + one_of(
        "not | never | no | nor | neither | cannot | hardly | reject(?:ed)? | avoid | against",
        "without | least | less | worse | worst | rather than | instead of | fails? | unclear",
        "than | wrong | mistaken? | untrue | doubt(?:ful)? | (?:hard|difficult|tough) to",
    )
    + r"\b|n['’]t\b"
)
SUPPOSED = pattern(
    r"\b"
    + one_of(
        "(?<!even\\x20)if(?! I (?:had|have|were) to\\b) | whether | unless",
        "suppose | assum(?:e|ing)",
        "either | depend(?:s|ing) | at first",
        "initial(?:ly)? | at first (?:glance|sight) | one (?:could|might|may)",
        "draft | preliminary | tentative(?:ly)? | provisional(?:ly)? | wenn",
        "falls(?! (?:short|behind|below|well)\\b)",
        "(?:some|many|most|others?) (?:\\w+ )?(?:may|might|would|people)",
        "first thought | thought (?:at first|initially) | was (?:inclined|tempted) | tempted to",
        "it (?:may|might|could) be argued | arguabl[ey] | seems? (?:like )?at",
        "could be (?:better|improved) | need to | to (?:determine|decide|evaluate|judge|see)",
        "would have",
    )
    + r"\b|(?:^|[,;:]\s*)[\W_]*"
    r"(?:si|s['’]ils?|se|sofern|als|indien|je[śs]li|je[żz]eli|если|om|hvis|e[ğg]er)\b"
)
PROVIDED = pattern(
    r"[^.;]{0,20}?\b(?:(?<!even )if|unless|provided|si|wenn|falls|se|если|je[śs]li)\b"
)
"""What makes a statement before it conditional: "would be better if it were shorter"."""

_OTHERS = one_of(
    "assistants? | evaluators? | critics? | reviewers? | judges? | they | both | experts?",
    "users? | others | he | she | evaluations? | (?:colleague|rater|annotator|grader|reader)s?",
)
_SAYS = one_of(
    "thinks? | believes? | argues? | argued | states? | stated | says? | said | claims?",
    "claimed | suggests? | suggested | concludes? | concluded | evaluates? | evaluated",
    "prefers? | preferred | points? out | notes? | asserts? | maintains? | agrees? | feels?",
    "would (?:\\w+ )?(?:go|pick|choose|prefer|vote|opt|select|take) | went with | picked | voted",
    "considers? | chose | chooses | mentions? | acknowledges? | recognizes? | favou?rs?",
)
REPORTED = pattern(
    rf"(?:{Y}|\b{_OTHERS})(?:\s+(?:and\s+{Y}|correctly|incorrectly|also|both|all|rightly|wrongly"
    rf"|that|given\s+by|by|initially|{Y}))*\s+{_SAYS}\b"
)
GIVEN = pattern(
    r"\b(?:reference|gold(?:en)?|expected|ground[\s-]truth|human|annotators?|users?)(?:['’]s?)?\s+$"
)
"""Whose verdict it is, if not the judge's: "The reference answer is A"."""
OF_OTHERS = pattern(
    r"(?<![\w'’])(?!(?:I|we|and|also|have|had|is|was|be|been|my|would|finally|therefore|thus|so|then|the)\b|\w+ly\b)"
    rf"[\w-]+\s+(?:chose|picked|preferred|selected|favou?red|voted|went|opted)\b[^,;.{TOKENS}]{{0,20}}(?={Y}|$)"
)
"""A choice that has another subject: "GPT-4 preferred B"."""
SAYS_AFTER = pattern(
    rf",?\s*(?:says|claims|states|argues|writes|insists|boasts)\s+(?:(?:the|its)\s+)?(?:\w+\s+)?"
    rf"(?:{NOUN}\b|{Y}|itself)"
)
"""What ends a reported choice: "B is better, says the first answer about itself"."""
ACCORDING = pattern(rf"\baccording\s+to\s+(?:the\s+\w+\s+)?(?:{Y}|assistant|evaluator|critic)")
OWN = re.compile(r"\b(?:I|we|my|our)\b")

QUALIFIED = pattern(
    r"[^.;]{0,12}\b"
    + one_of(
        r"in (?:terms|that(?! case)|this(?! case)|some|its|his|their) | only | when",
        r"at (?:the |its )?(?!all\b|least\b|most\b|last\b|once\b|this\b|that\b|the\b|its\b)\w+",
        "for (?:someone|people|those|users) | on (?:this|that) (?:point|aspect)",
        "with (?:respect|regard) | regarding | as far",
        "(?:to|on|for) (?:part|question|turn|point|the (?:first|second|last|one))",
    )
    + r"\b"
)
_REJECT = one_of(
    "reject | mark down | rule out | turn down | discard | drop | eliminate | penali[sz]e | fault",
    "vote against | leave out | pass over | send back | downgrade",
)
REJECTED = pattern(
    rf"\b(?:I|we)(?:\s+(?:would|will)(?:\s+(?:\w+ly\s+)?not|n['’]t)|['’]d\s+(?:\w+ly\s+)?not|\s+won['’]t)"
    rf"\s+(?:\w+ly\s+)?(?:pick|choose|select|go\s+(?:with|for)|vote\s+for)\s+{X}(?!\W*n?or\b)(?={BLANK}(?:$|[,;:]))"
    rf"|{X}{_BEING}\s+(?:\w+ly\s+)?the\s+(?:weaker|worse|poorer|inferior|lesser|less\s+\w+)\s+of\s+(?:the|these)\s+two"
    rf"|{X}[^.;{TOKENS}]{{0,40}}?\s(?:is|was)\s+the\s+one\s+(?:that\s+|which\s+)?(?:I|we)(?:['’]d|\s+would)?\s+{_REJECT}\b"
)
"""A candidate that the judge would not choose; of two, it chooses the other."""
CONCLUDES = pattern(
    r"\b"
    + one_of(
        "therefore | thus | hence | so | consequently | accordingly | overall",
        "in (?:conclusion|summary|short|sum|the end) | to (?:conclude|sum up|summarize)",
        "finally | final | ultimately | based on | given (?:this|these|the above|that)",
        "for these reasons | as a result | all things considered | conclusion | verdict",
        "in light of | considering | all told | all in all | on balance | as a whole",
        "on the whole | (?:all|every)thing together | all (?:of this|this|that) together",
        "weighed together",
        "for (?:that|this) reason | in my (?:judge?ment|view|opinion) | on reflection",
        "on (?:a )?closer (?:reading|look|inspection) | by (?:this|that|the) (?:rule|standard)",
        "(?:that|which|this) is why",
    )
    + r"\b"
)
OVERALL = pattern(
    r"\b"
    + one_of(
        "overall | together | all told | all in all | on balance | as a whole | on the whole",
        "all things considered | on (?:a )?closer | on reflection | in the end | final(?:ly)?",
        "ultimately",
    )
    + r"\b"
)
"""What weighs all that was said before: a first impression does not stand against it."""
_EXCELS = one_of(
    r"better | best | superior | preferable | preferred | winner | execut\w+ | meets?",
    r"satisf\w+ | follows? | correct | chosen | ahead",
)
_UNABLE = one_of(
    "cannot | can['’]t | can not | unable to | impossible to | difficult to | hard to",
)
_DECIDE = one_of("decide | determine | choose | say | pick | judge | tell")
TIE = pattern(
    r"\b(?:"
    + one_of(
        "it(?:['’]s| is) a (?:tie|draw)",
        "(?:a|is|call it a|verdict:?|result:?|answer:?) (?:tie|draw)",
        "empate | unentschieden | gleichstand | [ée]galit[ée] | pareggio",
        r"tied?\s*[.!]?$",
        "no (?:(?:clear|significant|meaningful|real|obvious|discernible) )?"
        "(?:winner|difference|preference|better (?:option|response|output))",
        "does(?: not|n['’]t) matter which | no reason to (?:favou?r|prefer|choose)",
    )
    + rf"|neither\b[^.]{{0,160}}\b{_EXCELS}|{_UNABLE}\s+(?:\w+\s+){{0,2}}?{_DECIDE})"
)
NO_TIE = pattern(
    r"\b(?:whether|if|unless)\b[^.,;]{0,40}\b(?:tie|draw)\b|"
    r"\b(?:going\s+to|would\s+have|wanted\s+to|tempted\s+to|inclined\s+to)\s+(?:\w+\s+){1,3}an?\s+(?:tie|draw)\b|"
    r"(?:\b(?:not|maybe|perhaps|possibly|nearly|almost|close\s+to|nowhere\s+near|far\s+from)|n['’]t)\s+(?:\w+ly\s+)?an?\s+(?:tie|draw)\b"
)
"""A tie that is denied: "This isn't a tie"."""
ALIKE_SO = pattern(rf"(?:[:=,]|\bso)\s*{_OPEN}{X}{BLANK}$")
"""The label of a tie at the end of a sentence that calls both alike: "Equally good: C"."""
ALIKE = pattern(
    r"\bequally\s+\w+|\b(?:both|two)\b[^.]{0,80}\b(?:equal(?:ly)?|the\s+same(?!\s+(?!quality|level|standard|overall)[a-z])|identical|similar)\b"
    r"(?!\s+in\s+(?!quality|every|all|merit|value)\w)"
)
"""A tie, unless the sentence chooses all the same: "both are similar, but A gave the better"."""
CONCEDES = pattern(r"\b(?:though|although|despite|even\s+if)\b[^,;.]*$")
"""A clause that grants something to the other: "even though A is more polite"."""
EACH_IN = pattern(
    rf"{Y}[^.]{{0,60}}\b(?:in|on|for)\b[^.]{{0,60}}\b(?:and|while|but)\s+{Y}\s+"
    r"(?:(?:is|was)\s+(?:better\s+)?)?(?:in|on|for)\b"
)
"""Each is better in something: "A is better on style and B on depth"."""
BOTH = pattern(rf"{Y}\s*(?:,|and|or|/|&|nor|vs\.?|versus)\s*{Y}")
LEAD = pattern(
    rf"^{BLANK}(?:(?:the\s+)?(?:final\s+)?(?:answer|verdict|choice|winner|output)"
    r"\s*(?:is)?\s*[:=]\s*)?"
    rf"{X}\s*(?=$|[.,;:!()\[—–]|-\s|\s(?:because|since|as|for|over)\b|(?-i:\s[A-Z]\w*\s))"
    rf"(?!\s*[,/&]\s*{Y})"
)
ALONE = re.compile(rf"^{BLANK}{X}{BLANK}(?<!:)$")
QUESTION = re.compile(r"\?\s*[\"'”)]*\s*$")

CRITERION = pattern(
    r"^\W*(?!(?:final|overall|my|the|reason|explanation|analysis|comparison|summary|judg|verdict|answer"
    r"|response|winner|choice|decision|conclusion|evaluation|result|preference|best|better|in|on|so)\w*\b)"
    r"[^\W\d_][\w/-]{2,24}(?:\s(?:and\s)?[\w/-]{2,16})?\s*(?::|\s[–—-])\s"
)
"""What begins a line on one criterion: "Accuracy: B is ahead"."""
MENTION = re.compile(Y)
