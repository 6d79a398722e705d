"""An Ethereum-style node: JSON-RPC 2.0 over HTTP POST, positional parameters, batches.

    python examples/jsonrpc/ethereum.py --port 8545
    curl -s -H 'Content-Type: application/json' http://127.0.0.1:8545/ \
        -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'

Quantities are hexadecimal strings, as that world writes them. The chain is a made-up one of a few
accounts; `app` is plain ASGI and mounts anywhere.
"""

from __future__ import annotations

import argparse
from typing import Annotated

import uvicorn
from msgspec import Meta

from dragoman.jsonrpc import RpcError, Service
from dragoman.transports import HttpService

Address = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{40}$")]
Block = Annotated[str, Meta(pattern=r"^(latest|earliest|pending|0x(0|[1-9a-f][0-9a-f]*))$")]

HEAD = 0x1312D00
ETHER = 10**18
BALANCES = {
    "0x00000000219ab540356cbb839cbe05303d7705fa": 32 * ETHER,
    "0xde0b295669a9fd93d5f28d9ec85e40f4cb697bae": ETHER // 2,
}

service = Service()


@service.method("eth_chainId")
def chain_id() -> str:
    return hex(1)


@service.method("eth_blockNumber")
def block_number() -> str:
    return hex(HEAD)


@service.method("eth_getBalance")
def balance(address: Address, block: Block = "latest") -> str:
    if block.startswith("0x") and int(block, 16) > HEAD:
        raise RpcError(-32000, "header not found", {"block": block, "head": hex(HEAD)})
    return hex(0 if block == "earliest" else BALANCES.get(address.lower(), 0))


app = HttpService(service)


def main() -> None:
    parser = argparse.ArgumentParser(description="an Ethereum-style JSON-RPC service")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8545, help="0 picks a free one and logs it")
    arguments = parser.parse_args()
    uvicorn.run(app, host=arguments.host, port=arguments.port, access_log=False)


if __name__ == "__main__":
    main()
