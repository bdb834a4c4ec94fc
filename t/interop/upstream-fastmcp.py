# A server made with FastMCP for Python, with sessions:
#
#     python upstream-fastmcp.py PORT

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("upstream-fastmcp-python", host="127.0.0.1",
                 port=int(sys.argv[1]))


class Name(BaseModel):
    name: str


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
async def slow(ms: int, steps: int, context: Context) -> str:
    for step in range(1, steps + 1):
        await asyncio.sleep(ms / steps / 1000)
        await context.report_progress(step, steps)
    return f"worked {ms} ms"


@server.tool()
def fail() -> str:
    raise ValueError("it broke")


@server.tool()
async def ask(label: str, context: Context) -> str:
    answer = await context.elicit(f"What is your name, for {label}?", Name)
    return f"{answer.action} {answer.data.name}"


server.run(transport="streamable-http")
