"""Formats of secrets, for diffs, logs and every text that leaves a job. Pure.

A format is looked for only in text that has one of its literals, which is fast. Every repetition is
bounded, so that a hostile line of a megabyte does not take quadratic time.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

HIDDEN: Final = "***"


def _after(characters: str) -> str:
    """Return the pattern of a place that follows none of them, or a line end in a string."""
    return rf"(?:(?<![{characters}])|(?<=\\[nrt]))"


_START: Final = _after("A-Za-z0-9")
_START_OF_BASE64: Final = _after("A-Za-z0-9+/")
_START_OF_NAME: Final = _after(r"\w.~-")
_END: Final = r"(?![A-Za-z0-9_-])"
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PLACEHOLDER: Final = "EXAMPLE"
"""Part of the keys in the documentation of services, such as AKIAIOSFODNN7EXAMPLE."""
_FILLED: Final = re.compile(r"([xX0*.])\1{7}")
"""The end of a text that stands for a secret."""


@dataclass(frozen=True)
class SecretFormat:
    """A format: group 1 of its pattern is the secret, or all of it without a group."""

    kind: str
    literals: tuple[str, ...]
    """In lower case; text without any of them has no such secret."""
    pattern: str
    random: bool = False
    """Whether the secret has to look random, because the rest of the format is common."""
    certain: bool = True
    """Whether such text is always a secret, and not only often."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern)

    def find(self, text: str, lower: str) -> Iterator[re.Match[str]]:
        """Yield the secrets in a text; `lower` is the text in lower case."""
        if any(literal in lower for literal in self.literals):
            for match in self.regex.finditer(text):
                if not self.random or is_random(match[1]):
                    yield match


def _token(kind: str, prefix: str, rest: str) -> SecretFormat:
    """Return the format of tokens that begin with a text of their own."""
    return SecretFormat(kind, (prefix.lower(),), f"{_START}{re.escape(prefix)}{rest}")


def _tokens(kind: str, prefixes: str, rest: str) -> Iterator[SecretFormat]:
    for prefix in prefixes.split():
        yield _token(kind, prefix, rest)


_KEY: Final = (
    r"(?i:passwo?r?d|passphrase|pwd|secret|token|api[_.-]?key|access[_.-]?key|account[_.-]?key"
    r"|auth[_.-]?key|private[_.-]?key|encryption[_.-]?key|license[_.-]?key|shared[_.-]?key"
    r"|signing[_.-]?key|app[_.-]?key|credentials?|_auth)"
)
_ASSIGNS: Final = r"""["'\]]{0,2}[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}(?:(?:[bfru]|str)?\\?["'])?"""

FORMATS: Final = (
    SecretFormat(
        "AWS Access Key",
        ("akia", "asia", "abia", "acca", "a3t"),
        rf"{_START}(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{{16}}(?![A-Za-z0-9])",
    ),
    SecretFormat(
        "AWS Access Key",
        ("aws",),
        r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?)"
        rf"{_START_OF_BASE64}([0-9a-zA-Z/+]{{40}})(?![A-Za-z0-9/+=])",
        random=True,
    ),
    SecretFormat(
        "AWS Session Token",
        ("session",),
        r"(?i:session_?token)[\"']?\s{0,3}[=:]\s{0,3}[\"']?([A-Za-z0-9/+=]{100,2000})",
        random=True,
    ),
    _token("AWS Bedrock Key", "ABSK", r"[A-Za-z0-9+/]{90,512}={0,2}"),
    _token("AWS MWS Key", "amzn.mws.", _UUID),
    SecretFormat(
        "Azure Key",
        ("key=",),
        r"(?i:(?:account|sharedaccess|access)key)=([A-Za-z0-9+/]{42,86}={1,2})",
    ),
    SecretFormat(
        "Azure Client Secret",
        ("q~",),
        rf"{_START_OF_NAME}[\w~.-]{{3}}[78]Q~[\w~.-]{{31,34}}(?![\w~-])",
    ),
    SecretFormat("Azure SAS Signature", ("sig=",), r"[?&;]sig=([A-Za-z0-9%+/]{43,70}(?:=|%3[Dd]))"),
    SecretFormat(
        "Azure Key",
        ("azdo", "azfu", "azse", "+acr", "+asb", "+aeh", "apim", "jqqj99"),
        rf"{_START_OF_BASE64}(?:[A-Za-z0-9+/]{{30,76}}(?:AzFu|AzSe|\+ACR|\+ASb|\+AEh|APIM)"
        r"[A-Za-z0-9+/]{5,8}={0,2}"
        r"|[A-Za-z0-9]{75,76}AZDO[A-Za-z0-9]{4}|[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26})(?![A-Za-z0-9+/])",
    ),
    _token("Google API Key", "AIza", rf"[0-9A-Za-z_-]{{35}}{_END}"),
    _token("Google OAuth Secret", "GOCSPX-", r"[\w-]{28}"),
    _token("Google OAuth Token", "ya29.", r"[\w-]{20,512}"),
    _token("Google OAuth Token", "1//0", r"[\w-]{40,200}"),
    _token("Google HMAC Key", "GOOG1", rf"[A-Z0-9]{{50,57}}{_END}"),
    SecretFormat("Firebase Key", (":apa91b",), r"AAAA[\w-]{7}:APA91b[\w-]{100,200}"),
    *_tokens("GitHub Token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_]{36,255}"),
    _token("GitHub Token", "github_pat_", r"[0-9A-Za-z]{22}_[0-9A-Za-z]{59}"),
    *_tokens(
        "GitLab Token",
        "glpat- gldt- glft- glsoat- glrt- glrtr- glptt- glimt- glagent- gloas- glffct- glwt-",
        r"[\w-]{20,1024}(?:\.[\w-]{2}\.[\w-]{9})?",
    ),
    _token("GitLab Token", "glcbt-", r"(?:[0-9a-fA-F]{1,5}_)?[\w-]{20,64}"),
    _token("GitLab Token", "GR1348941", rf"[\w-]{{20,50}}{_END}"),
    *_tokens("Atlassian Token", "ATATT3 ATCTT3", r"[\w-]{60,512}(?:=[0-9A-F]{8})?"),
    _token("Atlassian Token", "ATBB", rf"[A-Za-z0-9_=.-]{{28,64}}{_END}"),
    _token("Trello Token", "ATTA", rf"[0-9A-Za-z]{{60,128}}{_END}"),
    SecretFormat(
        "Slack Token",
        ("xox", "xapp-"),
        r"(?i)xox[abposr]-(?:\d+-)+[a-z0-9]+|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{64}"
        r"|xoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{100,512}|xox[cd]-[A-Za-z0-9%-]{60,512}",
    ),
    SecretFormat(
        "Slack Token",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(\w{1,64}/\w{1,64}/[\w/]{8,256})",
    ),
    SecretFormat(
        "Discord Bot Token",
        (".",),
        rf"{_START_OF_NAME}[MNO][a-zA-Z\d_-]{{23,25}}\.[a-zA-Z\d_-]{{6}}\.[a-zA-Z\d_-]{{27,38}}(?![\w-])",
    ),
    SecretFormat(
        "Discord Webhook",
        ("/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/(\d{17,20}/[\w-]{60,80})",
    ),
    SecretFormat(
        "Telegram Bot Token", (":",), rf"{_START_OF_NAME}\d{{8,10}}:[0-9A-Za-z_-]{{35}}{_END}"
    ),
    SecretFormat(
        "Teams Webhook",
        (".office.com/",),
        rf"\.office\.com/webhookb2/({_UUID}@{_UUID}/IncomingWebhook/[0-9a-f]{{32}}/{_UUID})",
    ),
    *_tokens("Stripe Access Key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[0-9a-zA-Z]{24,247}"),
    _token("Stripe Webhook Secret", "whsec_", r"[A-Za-z0-9+/=]{32,64}"),
    *_tokens("Square OAuth Secret", "sq0csp- sq0atp- sq0idp-", r"[\w-]{22,60}"),
    SecretFormat(
        "Square Access Token", ("eaaa",), rf"{_START}(EAAA[\w-]{{60}}){_END}", random=True
    ),
    SecretFormat(
        "Facebook Token", ("eaa",), rf"{_START}(EAA[A-Z][A-Za-z0-9]{{80,300}}){_END}", random=True
    ),
    SecretFormat(
        "Twilio API Key", ("ac", "sk"), rf"{_START}((?:AC|SK)[a-f0-9]{{32}})(?![A-Za-z0-9])"
    ),
    _token("SendGrid API Key", "SG.", r"[\w-]{22}\.[\w-]{43}"),
    SecretFormat(
        "Mailchimp Access Key", ("-us",), rf"{_START}[0-9a-f]{{32}}-us[0-9]{{1,2}}(?![0-9a-z])"
    ),
    _token("Mailgun Key", "key-", rf"[0-9a-f]{{32}}{_END}"),
    *_tokens("Brevo Key", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _token("NPM tokens", "npm_", rf"[A-Za-z0-9]{{36}}{_END}"),
    SecretFormat(
        "NPM tokens", ("_authtoken", "_auth"), r":_auth(?:Token)?\s{0,3}=\s{0,3}([\w+/=-]{16,256})"
    ),
    _token("PyPI Token", "pypi-AgE", r"[\w-]{70,512}"),
    _token("RubyGems Key", "rubygems_", r"[a-f0-9]{48}"),
    SecretFormat("Crates Token", ("cio",), rf"{_START}(cio[A-Za-z0-9]{{32}}){_END}", random=True),
    SecretFormat("NuGet Key", ("oy2",), rf"{_START}oy2[a-z0-9]{{43}}{_END}"),
    *_tokens("Hugging Face Token", "hf_ api_org_", rf"[A-Za-z0-9]{{34,40}}{_END}"),
    SecretFormat("OpenAI Token", ("t3blbkfj",), r"sk-[\w-]{10,200}T3BlbkFJ[\w-]{20,100}"),
    *_tokens("OpenAI Token", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[\w-]{40,256}"),
    SecretFormat("Anthropic API Key", ("sk-ant-",), r"sk-ant-[a-z0-9]{3,12}-[\w-]{80,256}"),
    _token("OpenRouter Key", "sk-or-v1-", r"[0-9a-f]{64}"),
    SecretFormat(
        "Key of a Model Provider",
        ("sk-",),
        rf"{_START}sk-([A-Za-z0-9]{{32,64}}){_END}",
        random=True,
    ),
    _token("Groq Key", "gsk_", r"[A-Za-z0-9]{40,60}"),
    _token("Replicate Token", "r8_", rf"[A-Za-z0-9]{{37,40}}{_END}"),
    _token("Perplexity Key", "pplx-", r"[A-Za-z0-9]{40,64}"),
    _token("xAI Key", "xai-", r"[A-Za-z0-9]{70,90}"),
    *_tokens("LangSmith Key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    _token("Fireworks Key", "fw_", rf"[A-Za-z0-9]{{22,24}}{_END}"),
    *_tokens("Databricks Token", "dapi dkea dose", r"[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    *_tokens("DigitalOcean Token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    _token("Heroku Key", "HRKU-", r"[\w-]{36,70}"),
    *_tokens("Fly.io Token", "fm1r_ fm1a_ fm2_", r"[A-Za-z0-9+/=]{60,2000}"),
    *_tokens("Vercel Token", "vcp_ vci_ vca_ vcr_ vck_", rf"[A-Za-z0-9]{{24,64}}{_END}"),
    *_tokens("Netlify Token", "nfp_ nfc_ nfo_ nfu_", rf"[A-Za-z0-9]{{36}}{_END}"),
    _token("Cloudflare Key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}"),
    SecretFormat("Terraform Token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}"),
    *_tokens("Vault Token", "hvs. hvb. hvr.", r"[\w-]{24,300}"),
    _token("Pulumi Token", "pul-", rf"[0-9a-f]{{40}}{_END}"),
    *_tokens(
        "Doppler Token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        r"(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    *_tokens("Docker Token", "dckr_pat_ dckr_oat_", r"[\w-]{27,40}"),
    _token("Artifactory Credentials", "AKC", rf"[a-zA-Z0-9]{{60,80}}{_END}"),
    _token("Artifactory Credentials", "cmVmdGtu", r"[A-Za-z0-9+/]{50,60}"),
    *_tokens("Sonar Token", "squ_ sqp_ sqa_", r"[0-9a-f]{40}"),
    *_tokens("CircleCI Token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    *_tokens("Buildkite Token", "bkua_ bkaj_ bkpt_", r"[0-9a-f]{40}"),
    *_tokens("Grafana Token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    _token("Grafana Token", "glc_eyJ", r"[A-Za-z0-9+/=]{40,400}"),
    *_tokens("New Relic Key", "NRAK- NRJS- NRII- NRAL- NRRA-", rf"[\w-]{{19,42}}{_END}"),
    *_tokens("Sentry Token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,400}"),
    _token("Dynatrace Token", "dt0", r"[a-z]\d{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    *_tokens("Honeycomb Key", "hcaik_ hcamk_ hcalk_", r"[a-z0-9]{50,70}"),
    _token("Notion Token", "ntn_", rf"[A-Za-z0-9]{{40,50}}{_END}"),
    _token("Notion Token", "secret_", rf"[A-Za-z0-9]{{43}}{_END}"),
    *_tokens("Linear Key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{40,64}"),
    *_tokens("Figma Token", "figd_ figo_ figu_", r"[\w-]{38,60}"),
    SecretFormat(
        "Airtable Token", ("pat",), rf"{_START}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}{_END}"
    ),
    SecretFormat(
        "Asana Token",
        ("/",),
        rf"{_START_OF_BASE64}[12]/\d{{12,20}}(?:/\d{{12,20}})?:[0-9a-f]{{32}}{_END}",
    ),
    *_tokens("Shopify Token", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", r"[a-fA-F0-9]{32}"),
    SecretFormat("Twitter Token", ("aaaaaaaaaaaaaaaa",), r"A{16,22}[A-Za-z0-9%]{60,120}"),
    SecretFormat(
        "Dropbox Token", ("sl.",), rf"{_START}(sl\.(?:u\.)?[\w-]{{120,300}}){_END}", random=True
    ),
    *_tokens("PlanetScale Token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.=-]{32,64}"),
    _token("Supabase Token", "sbp_", rf"(?:v0_)?[0-9a-f]{{40}}{_END}"),
    _token("Supabase Token", "sb_secret_", r"[\w-]{30,48}"),
    *_tokens(
        "Tailscale Key",
        "tskey-auth- tskey-api- tskey-client- tskey-webhook-",
        r"\w{9,24}-\w{20,40}",
    ),
    _token("1Password Token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{100,2000}"),
    SecretFormat(
        "1Password Key", ("a3-",), rf"{_START}A3-[A-Z0-9]{{6}}(?:-[A-Z0-9]{{5,11}}){{4,5}}{_END}"
    ),
    _token("Age Key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    _token("Postman Key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    *_tokens("Contentful Token", "CFPAT-", r"[\w-]{43}"),
    *_tokens("Prefect Key", "pnu_ pnb_", rf"[A-Za-z0-9]{{36}}{_END}"),
    *_tokens("Plaid Token", "access-sandbox- access-production- access-development-", _UUID),
    *_tokens("EasyPost Key", "EZAK EZTK", rf"[A-Za-z0-9]{{54}}{_END}"),
    *_tokens("Flutterwave Key", "FLWSECK-", r"[0-9a-f]{32}-X"),
    *_tokens("ReadMe Key", "rdme_", r"[a-z0-9]{70}"),
    *_tokens("Typeform Token", "tfp_", r"[\w.=-]{44,64}"),
    *_tokens("Clojars Token", "CLOJARS_", r"[a-f0-9]{60}"),
    *_tokens("Duffel Token", "duffel_live_ duffel_test_", r"[\w=-]{43}"),
    *_tokens("Infracost Key", "ico-", rf"[A-Za-z0-9]{{32}}{_END}"),
    *_tokens("Ubidots Key", "BBFF-", r"[A-Za-z0-9]{30,40}"),
    *_tokens("Scalingo Token", "tk-us-", r"[\w-]{48}"),
    *_tokens("Shippo Token", "shippo_live_ shippo_test_", r"[a-f0-9]{40}"),
    *_tokens("Frame.io Token", "fio-u-", r"[\w-]{64}"),
    *_tokens("Lob Key", "live_ test_", rf"(?:pub_)?[a-f0-9]{{31,35}}{_END}"),
    *_tokens("Intra42 Secret", "s-s4t2ud- s-s4t2af-", r"[a-f0-9]{64}"),
    *_tokens("Zapier Webhook", "hooks.zapier.com/hooks/catch/", r"\d{4,10}/\w{6,20}"),
    SecretFormat(
        "Softlayer Credentials",
        ("softlayer.com/soap/",),
        r"softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{64})",
    ),
    SecretFormat(
        "Private Key",
        ("private key", "putty-user-key-file"),
        r"BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?"
        r"(?:-----(?:(?:\\[nr]|\s){1,4}[A-Za-z0-9+/=:,.-]{16,128}){0,200})?"
        r"|PuTTY-User-Key-File-[23]",
    ),
    SecretFormat(
        "Secret in a Header",
        ("bearer ", "basic ", "x-"),
        r"(?i:\b(?:bearer|(?<=authorization: )basic|(?<=authorization\": \")basic"
        r"|x-[a-z-]{2,30}(?:key|token)\"?:)"
        r"\s{1,3}\"?)([A-Za-z0-9_.~+/=-]{20,512})",
        random=True,
    ),
    SecretFormat(
        "Secret in an Assignment",
        ("pass", "pwd", "secret", "token", "key", "credential", "_auth"),
        rf"{_KEY}[\w.-]{{0,24}}{_ASSIGNS}"
        r"([A-Za-z0-9+/_~.!@#$%^*=-]{16,256})(?![A-Za-z0-9(\[])",
        random=True,
    ),
    SecretFormat(
        "JSON Web Token",
        ("eyj",),
        rf"{_START_OF_NAME}eyJ[\w-]{{8,2000}}\.eyJ[\w-]{{8,4000}}(?:\.[\w-]{{0,1000}})?",
        certain=False,
    ),
    SecretFormat(
        "Basic Auth Credentials",
        ("://",),
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@'\"<>{}$]{0,128}:([^\s:/@'\"<>{}$]{1,512})@[\w\[]",
        certain=False,
    ),
)
"""All formats; those of a service that names its tokens come before the general ones."""

_MAY_HAVE_SECRET: Final = re.compile(r"[\w+/=.~%-]{16}|://|PRIVATE KEY|PuTTY")
_DIGITS: Final = 2
_ENTROPY: Final = 3.2
"""Bits of a character: `aaaabbbb1111` has less."""
_CHANGES: Final = 0.3
"""Runs of letters or digits for each character: a name in camel case has less."""
_RUNS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_WORDS: Final = re.compile(r"[A-Za-z][a-z]{4,}|[A-Z]{5,}")
_HEX: Final = re.compile(r"[0-9a-fA-F-]{24,}")


def is_random(text: str) -> bool:
    """Return whether a text looks like a random key, and not like a name, a path or a version."""
    digits = sum(map(str.isdigit, text))
    if not digits or _entropy(text) < _ENTROPY:
        return False
    if len(_RUNS.findall(text)) - 1 >= _CHANGES * len(text):
        return True
    if min(digits, sum(map(str.isalpha, text))) < _DIGITS:
        return False
    if _HEX.fullmatch(text):
        return True
    worded = sum(len(word) for word in _WORDS.findall(text))
    return worded * 3 <= len(text)


def _entropy(text: str) -> float:
    """Return the bits of information of a character of the text."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)


def secret_kinds(text: str, *, certain: bool = True) -> list[str]:
    """Return the kinds of the secrets in a text, or of what is often, but not always, a secret.

    Placeholders of documentation are no secrets.
    """
    if _MAY_HAVE_SECRET.search(text) is None:
        return []
    lower = text.lower()
    kinds = {
        item.kind
        for item in FORMATS
        if item.certain == certain
        for match in item.find(text, lower)
        if not _is_placeholder(match)
    }
    return sorted(kinds)


def _is_placeholder(match: re.Match[str]) -> bool:
    return _PLACEHOLDER in match[0] or _FILLED.match(match[0][-8:]) is not None


_KEY_NAMES: Final = r"(?:password|passwd|pwd|secret|token|api[_-]?key|consumer_key|(?<=[?&])key)"
_VALUE: Final = r"""(?:"[^"]{0,512}"|'[^']{0,512}'|[^\s"'&,;]{1,512})"""
_QUOTED: Final = r"""(?:"[^"]{0,512}"|'[^']{0,512}'|[0-9]{1,512})"""
_LOOSE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@'\"]{0,128}:)[^\s\"]{1,512}(?=@)",
        rf"({_KEY_NAMES}\s{{0,3}}=\s{{0,3}}){_VALUE}",
        # a key of JSON or of Python's repr; not `cannot open '/etc/passwd': no such file`
        rf"(([\"'])[\w.-]{{0,64}}?{_KEY_NAMES}\2\s{{0,3}}:\s{{0,3}}){_QUOTED}",
        r"(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{1,20}\s{1,3})?)[^\s\"',]{1,4096}",
        r"(\bbearer\s{1,3})[\w.~+/=-]{8,4096}",
        r"(\b(?:xox[a-z](?:\.xox[a-z])?-|xapp-|gh[pousr]_|github_pat_|glpat-))[\w-]{8,512}",
        r"(\bsk-)[\w-]{16,512}",
        # upper case only: `attachment_payload_limit_exceeded` is an error code
        r"(\b(?-i:AT(?:TA|ATT)))[\w=-]{16,512}",
        r"(\bhooks\.slack\.com/)[\w/-]{1,512}",
        r"(/tokens/)[^/\s?'\"]{8,512}",
    )
)
"""Text that may be a secret: a log loses nothing by it, a change of code would. Group 1 is kept."""


def hide_secrets(text: str) -> str:
    """Return a text with secrets, and what may be one, replaced by `***`."""
    for pattern in _LOOSE:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    if _MAY_HAVE_SECRET.search(text) is None:
        return text
    lower = text.lower()
    for item in FORMATS:
        spans = [match.span(match.lastindex or 0) for match in item.find(text, lower)]
        for start, end in reversed(spans):
            text = f"{text[:start]}{HIDDEN}{text[end:]}"
        if spans:
            lower = text.lower()
    return text
