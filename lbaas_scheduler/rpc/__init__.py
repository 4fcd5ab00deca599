"""The bus between servers, agents and clients: transport, document codec and the client side of every interface."""
