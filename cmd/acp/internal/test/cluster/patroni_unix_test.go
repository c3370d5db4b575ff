//go:build unix

package cluster

import (
	"net"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
)

// patroniFaults happen to servers that Patroni manages: nobody else promotes one.
var patroniFaults = []fault{
	{name: "Patroni: the machine of the primary is killed, and comes back", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		r.db[old].KillAll(t)
		r.primary = r.cluster.Primary(t, old)
		l.progress(t, 1)
		r.cluster.StartServer(t, old)
		r.cluster.AwaitWhole(t)
	}},
	{name: "Patroni: a planned switchover", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		r.cluster.Switch(t, old)
		r.primary = r.cluster.Primary(t, old)
		l.progress(t, 1)
		r.cluster.AwaitWhole(t)
	}},
	{name: "Patroni: the machine of the primary is paused, and continues after another one has taken over", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		r.db[old].SignalAll(syscall.SIGSTOP)
		r.primary = r.cluster.Primary(t, old)
		l.progress(t, 1)
		r.db[old].SignalAll(syscall.SIGCONT) // it does not know
		l.progress(t, 1)
		r.cluster.AwaitWhole(t)
		r.primary = r.cluster.Primary(t, -1)
	}},
	{name: "Patroni: the primary is cut off from everybody, another one takes over, and it is back", do: func(t *testing.T, r *rig, l *load, _ *gateway) {
		old := r.primary
		r.isolate(old, true)
		r.primary = r.cluster.Primary(t, old)
		l.progress(t, 1)
		r.isolate(old, false)
		l.progress(t, 1)
		r.cluster.AwaitWhole(t)
		r.primary = r.cluster.Primary(t, -1)
	}},
}

// isolate cuts a server off from everybody: gateways, other servers, and etcd; or it ends that.
func (r *rig) isolate(i int, cut bool) {
	for _, g := range r.nodes {
		g.db[i].cut(cut, cut)
	}
	for _, k := range r.around[i] {
		k.cut(cut, cut)
	}
}

// TestPatroni is TestFaults for what happens when Patroni promotes standbys.
func TestPatroni(t *testing.T) {
	if !*run {
		t.Skip("this takes minutes: use -cluster")
	}
	r := bareRig(t)
	r.cluster = pgtest.NewCluster(t, databases, *dcs)
	copy(r.db[:], r.cluster.Servers)
	r.cluster.Via = func(i int, address string) string {
		k := newLink(t, func() (net.Conn, error) { return net.Dial("tcp", address) })
		r.around[i] = append(r.around[i], k)
		return k.Addr()
	}
	r.primary = r.cluster.Start(t)
	t.Logf("Patroni %s with %s", r.cluster.Version, r.cluster.API)
	r.db[r.primary].Query(t, "postgres", `CREATE DATABASE acp`)
	for _, db := range r.db { // gateways give up where it is missing
		db.Until(t, "postgres", `SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'acp')`)
	}
	r.startGateways()
	r.suffer(t, patroniFaults)
}
