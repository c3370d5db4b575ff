package policy

import (
	"sync"
	"time"

	"github.com/goacp/acp"
)

// reportEvery bounds how often the same refusal of a user is reported: the log of who did what must not be
// filled by one of them.
const reportEvery = 10 * time.Second

// A meter knows how fast a user sends prompts, and what was reported about the user.
type meter struct {
	mu       sync.Mutex
	at       time.Time // of the latest prompt
	spent    float64   // prompts, less what has come back since
	reported map[string]time.Time
	used     time.Time // guarded by the set's lock
}

// meter returns the meter of a user.
func (s *Set) meter(user string) *meter {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.users[user]
	if m == nil {
		if len(s.users) >= maxMeters {
			oldest := ""
			for name, other := range s.users {
				if oldest == "" || other.used.Before(s.users[oldest].used) {
					oldest = name
				}
			}
			delete(s.users, oldest)
		}
		m = &meter{reported: make(map[string]time.Time)}
		s.users[user] = m
	}
	m.used = time.Now()
	return m
}

// take takes one of n that there are in a period. If there is none, it returns when there will be one.
func (m *meter) take(n int, period time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	each := period / time.Duration(n)
	m.spent = max(0, m.spent-float64(now.Sub(m.at))/float64(each))
	m.at = now
	if over := m.spent + 1 - float64(n); over > 0 {
		return time.Duration(over * float64(each))
	}
	m.spent++
	return 0
}

// maxReasons bounds the reasons that are remembered. The program has fewer.
const maxReasons = 64

// report reports whether a refusal is to be reported.
func (m *meter) report(reason string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if last, ok := m.reported[reason]; ok && now.Sub(last) < reportEvery || !ok && len(m.reported) >= maxReasons {
		return false
	}
	m.reported[reason] = now
	return true
}

// describe returns the name of an MCP server, and its program or its URL.
func describe(server acp.MCPServer) (name, target string) {
	switch m := server.(type) {
	case *acp.MCPServerStdio:
		return m.Name, m.Command
	case *acp.MCPServerHTTP:
		return m.Name, m.URL
	case *acp.MCPServerACP:
		return m.Name, "acp"
	}
	return "of an unknown kind", ""
}
