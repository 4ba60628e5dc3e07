#!/usr/bin/env bash
# Makes a certificate authority and a certificate for each EventStoreDB node, once.
# Usage: make-certificates.sh <folder for the nodes> <folder for ca.crt> <name of a node>...
# EVENTSTORE_ADMIN_PASSWORD is checked here because everything else waits for this.
set -euo pipefail

password=${EVENTSTORE_ADMIN_PASSWORD:-}
if [ "${#password}" -lt 16 ] || [[ "$password" == *[!A-Za-z0-9._~-]* ]]; then
  echo 'EVENTSTORE_ADMIN_PASSWORD must be 16 or more of A-Z a-z 0-9 . _ ~ - : set it in deploy/.env and start with --env-file deploy/.env' >&2
  exit 1
fi

nodes=$1
authority=$2
shift 2

# ca.crt is written last, so that an attempt that broke off is made again from the start.
if [ -f "$authority/ca.crt" ]; then
  echo "certificates are there already"
  exit 0
fi

# The key of the authority lives in this folder only and goes with it: nobody can make another node later.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
es-gencert-cli create-ca -out ca
for name in "$@"; do
  es-gencert-cli create-node -ca-certificate ca/ca.crt -ca-key ca/ca.key -out "$name" \
    -ip-addresses 127.0.0.1 -dns-names "$name,localhost"
  rm -rf "${nodes:?}/$name"
  mkdir -p "$nodes/$name"
  cp "$name/node.crt" "$name/node.key" "$nodes/$name/"
  chmod 0400 "$nodes/$name/node.key"
  chmod 0444 "$nodes/$name/node.crt"
  # The user of the EventStoreDB image.
  chown -R 1000:1000 "$nodes/$name"
done
cp ca/ca.crt "$authority/ca.crt.new"
chmod 0444 "$authority/ca.crt.new"
mv "$authority/ca.crt.new" "$authority/ca.crt"
