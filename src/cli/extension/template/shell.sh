#!/bin/sh
# An extension of pi: a tool for the model and a command for you. pi docs extensions is the protocol.
# jq reads and writes JSON.

send() { jq -cn --argjson id "$id" "{jsonrpc: \"2.0\", id: \$id, $1}"; }

while IFS= read -r line; do
  method=$(printf '%s' "$line" | jq -r '.method // ""')
  id=$(printf '%s' "$line" | jq -c '.id')
  # An answer to a call of ours, or a notification.
  if [ -z "$method" ] || [ "$id" = null ]; then continue; fi
  case $method in
    initialize)
      send 'result: {
        protocolVersion: 1,
        tools: [{name: "@NAME@", description: "Greets somebody", parameters: {type: "object",
          properties: {who: {type: "string", description: "Who is greeted"}}, required: ["who"]}}],
        commands: [{name: "@NAME@", description: "Greets you"}]}' ;;
    tool.call)
      who=$(printf '%s' "$line" | jq '.params.arguments.who')
      send "result: {content: (\"Hello, \" + $who + \".\")}" ;;
    command.run)
      jq -cn '{jsonrpc: "2.0", id: "note", method: "ui.notify", params: {message: "Hello.", type: "info"}}'
      send 'result: null' ;;
    shutdown) send 'result: null'; exit ;;
    *) send 'result: null' ;;
  esac
done
