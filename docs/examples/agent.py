import json, sys


def say(**message):
    print(json.dumps(message), flush=True)


start = json.loads(sys.stdin.readline())
say(type="ask", id="1", key="word", text="Which greeting?", choices=["hello", "goodbye"])
reply = json.loads(sys.stdin.readline())
if reply["type"] == "answer":  # else "park": exit 0, and be started again with the answer
    with open("GREETING.txt", "w") as file:
        file.write(f"{reply['value']}, {start['job']}\n")
    say(type="result", summary=f"said {reply['value']}")
