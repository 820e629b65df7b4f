"""Generated examples of the formats of secrets, as services document them. None was ever real.

A template has a literal text and fields: `{A36}` are 36 letters and digits, `{h40}` hexadecimal
digits, `{d9}` digits, `{a20}` lower case letters and digits, `{U16}` upper case and digits, `{w22}`
characters of base64url, `{b40}` those of base64, `{uuid}` a UUID.
"""

from __future__ import annotations

import random
import re
import string
from typing import Final

_ALPHABETS: Final = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
}
_FIELD: Final = re.compile(r"\{(uuid|[AaUhHdwb]\d+)\}")
_UUID: Final = "{h8}-{h4}-4{h3}-a{h3}-{h12}"

TEMPLATES: Final = (
    # clouds
    "AKIA{U16}",
    "ASIA{U16}",
    'aws_secret_access_key = "{b40}"',
    "aws_secret_access_key = {b40}",
    "AWS_SECRET_ACCESS_KEY={b40}",
    "aws_session_token = IQoJb3JpZ2luX2Vj{b300}",
    "ABSKQmVkcm9ja0FQSUtleS{b100}",
    "amzn.mws.{uuid}",
    "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={b86}==",
    "Endpoint=sb://acme.example/;SharedAccessKeyName=all;SharedAccessKey={b43}=",
    "{A3}8Q~{A34}",
    "https://acme.example/files?sv=2022-11-02&sig={A43}%3D",
    "{A76}AZDO{A4}",
    "{b44}AzFu{A8}==",
    "{b42}+ACR{A6}",
    "{b42}AzSe{A6}",
    "AIza{w35}",
    "GOCSPX-{w28}",
    "ya29.{w140}",
    "1//0{w90}",
    "GOOG1E{U56}",
    "AAAA{w7}:APA91b{w134}",
    "dop_v1_{h64}",
    "doo_v1_{h64}",
    "dor_v1_{h64}",
    "HRKU-AA{w58}",
    "fm2_{b200}",
    "vcp_{A56}",
    "nfp_{A36}",
    "v1.0-{h24}-{h146}",
    "CLOUDFLARE_API_TOKEN={w40}",
    "ibm_cloud_iam_api_key = {w44}",
    "https://api.softlayer.com/soap/v3/{h64}",
    # forges, chats and trackers
    "ghp_{A36}",
    "gho_{A36}",
    "ghu_{A36}",
    "ghs_{A36}",
    "ghr_{A36}",
    "github_pat_{A22}_{A59}",
    "glpat-{w20}",
    "glpat-{w44}.01.{a9}",
    "gldt-{w20}",
    "glrt-{w20}",
    "glcbt-64_{w20}",
    "glptt-{h40}",
    "glft-{w20}",
    "glimt-{a25}",
    "glagent-{w50}",
    "gloas-{h64}",
    "glsoat-{w20}",
    "GR1348941{w20}",
    "ATATT3xFfGF0{w180}={H8}",
    "ATCTT3xFfGN0{w180}={H8}",
    "ATBB{A32}",
    "ATTA{h64}",
    "xoxb-{d12}-{d12}-{A24}",
    "xoxp-{d12}-{d12}-{d12}-{h32}",
    "xapp-1-A{U10}-{d13}-{h64}",
    "xoxe.xoxp-1-{A160}",
    "xoxe-1-{A140}",
    "https://hooks.slack.com/services/T{U10}/B{U10}/{A24}",
    "https://hooks.slack.com/workflows/T{U10}/A{U10}/{d18}/{A24}",
    "MT{A22}.G{w5}.{w38}",
    "https://discord.com/api/webhooks/{d18}/{w68}",
    "{d10}:AA{w33}",
    "https://acme.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}",
    "ntn_{A46}",
    "secret_{A43}",
    "lin_api_{A40}",
    "figd_{w40}",
    "pat{A14}.{h64}",
    "1/{d16}:{h32}",
    # payments and mail
    "sk_live_{A24}",
    "rk_live_{A24}",
    "sk_test_{A24}",
    "whsec_{A32}",
    "sq0csp-{w43}",
    "sq0atp-{w22}",
    "EAAA{w60}",
    "shpat_{h32}",
    "shpss_{h32}",
    "AC{h32}",
    "SK{h32}",
    "SG.{w22}.{w43}",
    "{h32}-us12",
    "key-{h32}",
    "xkeysib-{h64}-{A16}",
    # packages and builds
    "npm_{A36}",
    "//packages.example/:_authToken={uuid}",
    "//packages.example/:_auth={b40}",
    "pypi-AgEIcHlwaS5vcmc{w130}",
    "rubygems_{h48}",
    "cio{A32}",
    "oy2{a43}",
    "dckr_pat_{w27}",
    "AKCp{A69}",
    "cmVmdGtuO{A55}",
    "squ_{h40}",
    "CCIPAT_{A22}_{h40}",
    "bkua_{h40}",
    "{A14}.atlasv1.{A67}",
    "pul-{h40}",
    # models
    "sk-{A20}T3BlbkFJ{A20}",
    "sk-proj-{w60}T3BlbkFJ{w60}",
    "sk-ant-api03-{w93}AA",
    "sk-ant-oat01-{w93}AA",
    "hf_{A34}",
    "api_org_{A34}",
    "gsk_{A52}",
    "r8_{A37}",
    "pplx-{A48}",
    "xai-{A80}",
    "sk-or-v1-{h64}",
    "lsv2_pt_{h32}_{h10}",
    "sk-{h32}",
    "fw_{A22}",
    # operations
    "hvs.{w90}",
    "hvb.{w130}",
    "dapi{h32}",
    "dp.pt.{A43}",
    "glsa_{A32}_{h8}",
    "glc_eyJ{b120}",
    "NRAK-{U27}",
    "sntrys_eyJ{b150}_{A43}",
    "sntryu_{h64}",
    "dt0c01.{U24}.{U64}",
    "pscale_tkn_{w43}",
    "sbp_{h40}",
    "sb_secret_{w31}",
    "tskey-auth-{A17}-{A32}",
    "ops_eyJ{b250}",
    "AGE-SECRET-KEY-1{U58}",
    # keys and headers of any service
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "PuTTY-User-Key-File-3: ssh-ed25519",
    "eyJhbGciOiJIUzI1NiJ9.eyJ{w60}.{w43}",
    "postgresql://app:{A20}@db.example/app",
    "Authorization: Bearer {A40}",
    "Authorization: Basic {b40}=",
    # assignments
    "DB_PASSWORD={A20}",
    "export DEPLOY_TOKEN={A32}",
    "client_secret: {A40}",
    'apiKey: "{h32}"',
    "DD_API_KEY={h32}",
    "CONSUL_HTTP_TOKEN={uuid}",
    "ENCRYPTION_KEY={b43}=",
    '"private_token": "{w20}"',
    "password: '{A24}'",
    "secret_key_base: {h128}",
)
"""One template for each format."""


def example(template: str, seed: int = 0) -> str:
    """Return a secret of a format; another seed gives another one."""
    chosen = random.Random(f"{template}{seed}")

    def characters(match: re.Match[str]) -> str:
        field = match[1]
        return "".join(chosen.choices(_ALPHABETS[field[0]], k=int(field[1:])))

    return _FIELD.sub(characters, template.replace("{uuid}", _UUID))
