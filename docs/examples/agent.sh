#!/bin/sh
read -r start
echo '{"type": "ask", "id": "1", "key": "word", "text": "Which greeting?",' \
     '"choices": ["hello", "goodbye"]}'
read -r reply
case $reply in
  '{"type":"answer"'*'"value":"hello"'*) word=hello ;;
  '{"type":"answer"'*'"value":"goodbye"'*) word=goodbye ;;
  *) exit 0 ;; # "park": be started again with the answer
esac
echo "$word" > GREETING.txt
echo '{"type": "result", "summary": "said '"$word"'"}'
