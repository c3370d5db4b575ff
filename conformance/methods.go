package conformance

import (
	"encoding/json"
	"sync"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// A method is one that a version of the protocol knows.
type method struct {
	name         string
	request      *codec // what it carries as a request, nil if it is none
	notification *codec
	// Who handles the request and the notification. Those of proxies are handled
	// by either side, and so is what belongs to the protocol itself.
	asks, tells party
}

// A party is who handles a method.
type party uint8

const (
	nobody party = iota
	agents
	clients
	either
)

// takes reports whether the side handles it.
func (p party) takes(side int) bool {
	return p == either || p == agents && side == theAgent || p == clients && side == theClient
}

// A codec reads what a method carries. Its functions are nil where anything may
// be carried.
type codec struct {
	params, result func(*wire.Decoder) any
}

// reader returns what reads a T, or nil if that is raw JSON.
func reader[T any]() func(*wire.Decoder) any {
	if _, raw := any(new(T)).(*json.RawMessage); raw {
		return nil
	}
	if f := wire.MakerOf[T](); f != nil {
		return f
	}
	return func(d *wire.Decoder) any {
		x := new(T)
		wire.Decode(x, d)
		return x
	}
}

type methods map[string]*method

func (t methods) of(name string) *method {
	if t[name] == nil {
		t[name] = &method{name: name}
	}
	return t[name]
}

func asks[P, R any](t methods, m jsonrpc.Method[P, R]) {
	t.of(m.Name).request = &codec{reader[P](), reader[R]()}
}

func tells[P any](t methods, n jsonrpc.Notification[P]) {
	t.of(n.Name).notification = &codec{params: reader[P]()}
}

// protocol returns the methods of a version.
func protocol(version int) methods {
	if version == 2 {
		return methodsV2()
	}
	return methodsV1()
}

var methodsV1 = sync.OnceValue(func() methods {
	t := methods{}
	tells(t, acpv1.NotificationCancelRequest)
	asks(t, acpv1.MethodAuthStatus)
	tells(t, acpv1.NotificationAuthStatusUpdate)
	asks(t, acpv1.MethodAuthenticate)
	tells(t, acpv1.NotificationElicitationComplete)
	asks(t, acpv1.MethodElicitationCreate)
	asks(t, acpv1.MethodFSReadTextFile)
	asks(t, acpv1.MethodFSWriteTextFile)
	asks(t, acpv1.MethodInitialize)
	asks(t, acpv1.MethodLogout)
	tells(t, acpv1.NotificationMCPMessage)
	asks(t, acpv1.MethodMCPMessage)
	asks(t, acpv1.MethodProvidersDisable)
	asks(t, acpv1.MethodProvidersList)
	asks(t, acpv1.MethodProvidersSet)
	asks(t, acpv1.MethodProxyInitialize)
	asks(t, acpv1.MethodProxySuccessor)
	tells(t, acpv1.NotificationProxySuccessor)
	asks(t, acpv1.MethodSessionArchive)
	tells(t, acpv1.NotificationSessionCancel)
	asks(t, acpv1.MethodSessionClose)
	asks(t, acpv1.MethodSessionDelete)
	asks(t, acpv1.MethodSessionFork)
	asks(t, acpv1.MethodSessionList)
	asks(t, acpv1.MethodSessionLoad)
	asks(t, acpv1.MethodSessionNew)
	asks(t, acpv1.MethodSessionPrompt)
	asks(t, acpv1.MethodSessionRequestPermission)
	asks(t, acpv1.MethodSessionResume)
	asks(t, acpv1.MethodSessionSetConfigOption)
	asks(t, acpv1.MethodSessionSetMode)
	asks(t, acpv1.MethodSessionSetTitle)
	asks(t, acpv1.MethodSessionStatus)
	asks(t, acpv1.MethodSessionUnarchive)
	tells(t, acpv1.NotificationSessionUpdate)
	asks(t, acpv1.MethodTerminalCreate)
	asks(t, acpv1.MethodTerminalKill)
	asks(t, acpv1.MethodTerminalOutput)
	asks(t, acpv1.MethodTerminalRelease)
	asks(t, acpv1.MethodTerminalWaitForExit)
	for _, i := range acpv1.Methods() {
		p := map[acpv1.Side]party{acpv1.SideAgent: agents, acpv1.SideClient: clients}[i.Side]
		if p == nobody {
			p = either
		}
		if m := t.of(i.Name); i.Notification {
			m.tells = p
		} else {
			m.asks = p
		}
	}
	return t
})

var methodsV2 = sync.OnceValue(func() methods {
	t := methods{}
	tells(t, acpv2.NotificationCancelRequest)
	asks(t, acpv2.MethodAuthLogin)
	asks(t, acpv2.MethodAuthLogout)
	asks(t, acpv2.MethodAuthStatus)
	tells(t, acpv2.NotificationAuthStatusUpdate)
	tells(t, acpv2.NotificationElicitationComplete)
	asks(t, acpv2.MethodElicitationCreate)
	asks(t, acpv2.MethodInitialize)
	tells(t, acpv2.NotificationMCPMessage)
	asks(t, acpv2.MethodMCPMessage)
	asks(t, acpv2.MethodProvidersDisable)
	asks(t, acpv2.MethodProvidersList)
	asks(t, acpv2.MethodProvidersSet)
	asks(t, acpv2.MethodProxyInitialize)
	asks(t, acpv2.MethodProxySuccessor)
	tells(t, acpv2.NotificationProxySuccessor)
	asks(t, acpv2.MethodSessionArchive)
	tells(t, acpv2.NotificationSessionCancel)
	asks(t, acpv2.MethodSessionClose)
	asks(t, acpv2.MethodSessionDelete)
	asks(t, acpv2.MethodSessionFork)
	asks(t, acpv2.MethodSessionList)
	asks(t, acpv2.MethodSessionNew)
	asks(t, acpv2.MethodSessionPrompt)
	asks(t, acpv2.MethodSessionRequestPermission)
	asks(t, acpv2.MethodSessionResume)
	asks(t, acpv2.MethodSessionSetConfigOption)
	asks(t, acpv2.MethodSessionSetTitle)
	asks(t, acpv2.MethodSessionStatus)
	asks(t, acpv2.MethodSessionUnarchive)
	tells(t, acpv2.NotificationSessionUpdate)
	asks(t, acpv2.MethodTerminalCancel)
	asks(t, acpv2.MethodToolCallCancel)
	for _, i := range acpv2.Methods() {
		p := map[acpv2.Side]party{acpv2.SideAgent: agents, acpv2.SideClient: clients}[i.Side]
		if p == nobody {
			p = either
		}
		if m := t.of(i.Name); i.Notification {
			m.tells = p
		} else {
			m.asks = p
		}
	}
	return t
})
