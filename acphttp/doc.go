// Package acphttp carries the Agent Client Protocol over Streamable HTTP, for servers
// and for clients.
//
// A [Server] is an [http.Handler] that serves an agent:
//
//	server := &acphttp.Server{Serve: agent.Serve}
//	defer server.Close(ctx)
//	http.Handle("/acp", server)
//	err := http.ListenAndServe("127.0.0.1:7842", nil)
//
// A [Transport] is the way to an agent:
//
//	conn, err := client.Connect(ctx, acphttp.NewTransport("https://agents.example/acp"))
//
// Package acpws does the same over WebSocket; its Upgrader lets a Server serve both at
// one URL.
//
// # The transport
//
// The client posts each message in a request of its own. The first one is initialize,
// whose answer is in the response, with the id of the connection in the header
// Acp-Connection-Id. All further requests have that header. What the agent sends is
// read with GET as server-sent events: one stream for each session, named by the
// header Acp-Session-Id, and one for the rest. DELETE ends the connection.
//
//	request                                         status
//	POST initialize                                 200, and the answer as JSON
//	POST, any other message                         202
//	GET                                             200, and events
//	DELETE                                          202
//	a body that is not application/json             415
//	a body that is not JSON, or not an object       400
//	a JSON-RPC batch                                501
//	a body of more than Limits.MaxMessage           413
//	no Acp-Connection-Id, an id that is too long    400
//	no Acp-Session-Id where the message needs one,
//	or another than the message names               400
//	initialize on an existing connection            400
//	a connection that is unknown, or not yours      404
//	GET without Accept: text/event-stream           406
//	GET for a stream that is being read, for a
//	deleted session, or from a cursor that is gone  409
//	an agent that ends before it is initialized     500
//	an agent that does not answer initialize        504
//	a request while too much is unread, too many
//	connections, a server that is closing           503, with Retry-After
//	GET for one stream too many                     429
//	another origin                                  403
//	another host                                    421
//	WebSocket where it is not served                426
//	any other method                                405
//
// HTTP/1.1 and HTTP/2 are served alike, with and without TLS: see [http.Protocols].
//
// # Order
//
// The order of package jsonrpc holds for each session, and for what belongs to none.
// Between sessions there is none, since each has a stream of its own.
//
// # Endings
//
// A connection outlives requests: one whose client vanished is given up after
// [Limits.IdleTimeout]. What was written to a request that broke is lost, unless
// [Server.Keep] makes streams resumable. Then each event has an id, and a client that
// names the last one it got in the header Last-Event-ID gets everything after it,
// exactly once, or 409. What precedes the number of an id, alone, asks for everything
// since the session was opened. A WebSocket that broke is replaced by another one, on which
// the client sends stream/resume first; see [NewMessageStream].
//
// # Security
//
// On an address of this machine alone, a Server refuses requests that do not name that
// machine as their host, and everywhere requests of web pages of other origins: see
// [Server.Hosts] and [Server.Origins]. [Server.Authenticate] says who a client is;
// without it everybody who can reach the address is served. Behind a proxy that ends
// TLS, set Hosts and Origins to what browsers see.
package acphttp
