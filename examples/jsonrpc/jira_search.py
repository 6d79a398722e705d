"""An issue search as a plain JSON-RPC 2.0 method: lines on stdio, with progress while it runs.

    python examples/jsonrpc/jira_search.py

`jira_search(jql)` finds issues of a small built-in tracker. While it reads its pages it sends
`progress` notifications that carry the id of the request; short searches overtake long ones, and
the id pairs each answer with its question. A query that it cannot read is answered with -32600.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec

from dragoman.jsonrpc import Exchange, RpcError, Service
from dragoman.transports import serve_stdio

INVALID_REQUEST = -32600
PAGE = 2

service = Service()


class Issue(msgspec.Struct):
    key: str
    project: str
    status: str
    summary: str


ISSUES = [
    Issue("PAY-1", "PAY", "Open", "결제 승인이 두 번 기록됨"),
    Issue("PAY-2", "PAY", "Done", "환불 영수증에 금액이 없음"),
    Issue("PAY-3", "PAY", "Open", "카드사 응답 시간 초과"),
    Issue("PAY-4", "PAY", "Open", "해외 결제 환율 오류"),
    Issue("PAY-5", "PAY", "Done", "정산 보고서 누락"),
    Issue("WEB-1", "WEB", "Open", "로그인 화면이 깨짐"),
]

CLAUSE = re.compile(r"\s*(?P<field>project|status)\s*=\s*(?P<value>\w+)\s*", re.IGNORECASE)


@service.method
async def jira_search(jql: str, exchange: Exchange) -> dict[str, Any]:
    wanted = parse(jql)
    candidates = [issue for issue in ISSUES if issue.project == wanted.get("project", issue.project)]
    found: list[Issue] = []
    for start in range(0, len(candidates), PAGE):
        page = candidates[start : start + PAGE]
        found += [issue for issue in page if issue.status == wanted.get("status", issue.status)]
        read = start + len(page)
        exchange.notify(
            "progress",
            {
                "id": exchange.id,
                "progress": read,
                "total": len(candidates),
                "message": f"이슈 {len(candidates)}건 중 {read}건을 검색했습니다",
            },
        )
        await asyncio.sleep(0)  # where a real tracker would be asked for its next page
    return {"total": len(found), "issues": found}


def parse(jql: str) -> dict[str, str]:
    """`project = PAY AND status = Open` as a record; RpcError names the clause that it cannot read."""
    wanted: dict[str, str] = {}
    for clause in re.split(r"\bAND\b", jql, flags=re.IGNORECASE):
        found = CLAUSE.fullmatch(clause)
        if found is None:
            raise RpcError(
                INVALID_REQUEST,
                f"jql: expected `project = NAME` or `status = NAME`, received {clause.strip()!r}",
                {"jql": jql},
            )
        wanted[found["field"].lower()] = found["value"]
    return wanted


if __name__ == "__main__":
    asyncio.run(serve_stdio(service))
