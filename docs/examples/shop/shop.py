"""The jobs of the shop: draftsman worker --app shop."""

from draftsman import Answered, BlockingRunContext, job


@job("shop:refund", title="Refund order {order}")
def refund(ctx: BlockingRunContext, order: int, euros: int = 20) -> str:
    """Refund an order, once a person agrees."""
    answer = ctx.ask("refund", f"Refund {euros} euros?", choices=["yes", "no"])
    if isinstance(answer, Answered) and answer.value == "yes":
        return ctx.step("pay", lambda key: f"paid {euros} for order {order}")
    return "refused"
