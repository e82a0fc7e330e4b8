#!/bin/sh
# Talks to the extension as pi does. Run it: sh test.sh

set -eu
program=$(dirname "$0")/@NAME@
ask() { printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$1" "$2" "$3"; }
answers=$({
  ask 1 initialize '{}'
  ask 2 tool.call '{"name":"@NAME@","arguments":{"who":"Ada"}}'
  ask 3 shutdown '{}'
} | "$program")
test "$(printf '%s' "$answers" | jq 'select(.id == 1).result.protocolVersion')" = 1
test "$(printf '%s' "$answers" | jq -r 'select(.id == 2).result.content')" = "Hello, Ada."
echo ok
