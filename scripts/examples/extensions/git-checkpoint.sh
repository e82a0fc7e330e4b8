#!/bin/sh
# Keeps the state of the work tree before every turn as a commit of its own, below refs/pi/checkpoints: the index, the
# branch and the files stay as they are. New files count as well. The last 100 are kept.
#
#     pi -e scripts/examples/extensions/git-checkpoint.sh
#     git for-each-ref refs/pi/checkpoints
#     git restore --source=refs/pi/checkpoints/TIME-TURN -- .

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }

checkpoint() {
  head=$(git rev-parse --verify --quiet HEAD) || return 0
  index=$(git rev-parse --git-path index) && copy=$index.pi-$$ && cp "$index" "$copy" || return 0
  tree=$(GIT_INDEX_FILE=$copy && export GIT_INDEX_FILE && git add -A . && git write-tree)
  rm -f "$copy"
  [ -n "$tree" ] || return 0
  last=$(git for-each-ref --sort=-refname --count=1 --format='%(tree)' refs/pi/checkpoints)
  [ "$tree" = "$last" ] && return 0
  commit=$(git -c user.name=pi -c user.email=pi@localhost commit-tree "$tree" -p "$head" -m "Before turn $1") || return 0
  git update-ref "refs/pi/checkpoints/$(date +%Y%m%d-%H%M%S)-$1" "$commit"
  git for-each-ref --sort=-refname --format='%(refname)' refs/pi/checkpoints | tail -n +101 | while read -r old; do
    git update-ref -d "$old"
  done
}

while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\),.*/\1/p')
  [ -n "$id" ] || continue
  case $line in
    *'"method":"initialize"'*) 
      answer '{"protocolVersion":1,"events":["turn_start"],
        "commands":[{"name":"checkpoints","description":"Says how to look at the checkpoints"}]}' | tr -d '\n'; echo ;;
    *'"method":"command.run"'*)
      note='git for-each-ref refs/pi/checkpoints; git restore --source=REF -- .'
      printf '{"jsonrpc":"2.0","id":"note","method":"ui.notify","params":{"message":"%s","type":"info"}}\n' "$note"
      answer null ;;
    *'"type":"turn_start"'*)
      turn=$(printf '%s' "$line" | sed -n 's/.*"turnIndex":\([0-9]*\).*/\1/p')
      checkpoint "${turn:-0}" >/dev/null 2>&1
      answer null ;;
    *'"method":"shutdown"'*) answer null; exit ;;
    *) answer null ;;
  esac
done
