"""How two machines talk: messages, manifest, codec, chunks, transport, client and server."""
