package telemetry

import (
	"slices"
	"testing"
	"time"
)

// TestUsage: on Linux the process says all of the figures that Prometheus' client for Go says.
func TestUsage(t *testing.T) {
	u := usageNow()
	now := float64(time.Now().Unix())
	for name, between := range map[string][2]float64{
		"process_cpu_seconds_total": {0, 1e6}, "process_max_fds": {16, 1e10}, "process_open_fds": {3, 1e5},
		"process_resident_memory_bytes": {1 << 20, 1 << 40}, "process_virtual_memory_bytes": {1 << 20, 1 << 60},
		"process_virtual_memory_max_bytes": {1 << 20, 1 << 63 * 2}, "process_start_time_seconds": {now - 1e6, now + 60},
		"process_network_receive_bytes_total": {0, 1e20}, "process_network_transmit_bytes_total": {0, 1e20},
	} {
		if v, ok := u[name]; !ok || v < between[0] || v > between[1] {
			t.Errorf("%s: %v, %v", name, v, ok)
		}
	}
}

// TestNetwork: lines of names and of numbers go together, however many there are of each.
func TestNetwork(t *testing.T) {
	const names = "IpExt: InNoRoutes InOctets OutOctets\n"
	for text, want := range map[string][]float64{
		"TcpExt: InOctets\nTcpExt: 7\n" + names + "IpExt: 0 5 6\n": {5, 6}, names + "IpExt: 0 5\n": {5, 0}, names: {0, 0}, "IpExt: 1 2\nIpExt:": {0, 0}, "": {0, 0},
	} {
		u := usage{}
		u.network(text)
		if got := []float64{u["process_network_receive_bytes_total"], u["process_network_transmit_bytes_total"]}; !slices.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}
