package telemetry

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel      = windows.NewLazySystemDLL("kernel32.dll")
	handleCount = kernel.NewProc("GetProcessHandleCount")
	memoryInfo  = kernel.NewProc("K32GetProcessMemoryInfo")
)

// memory is PROCESS_MEMORY_COUNTERS_EX.
type memory struct {
	size, _                uint32
	_, workingSet          uintptr
	_, _, _, _, _, _, used uintptr
}

// usageNow asks Windows about this process.
func usageNow() usage {
	u := usage{"process_max_fds": 1 << 24} // of handles, for each process
	self := windows.CurrentProcess()
	var began, ended, kernelTime, userTime windows.Filetime
	if windows.GetProcessTimes(self, &began, &ended, &kernelTime, &userTime) == nil {
		units := func(t windows.Filetime) float64 { return float64(uint64(t.HighDateTime)<<32 + uint64(t.LowDateTime)) }
		u["process_cpu_seconds_total"] = (units(kernelTime) + units(userTime)) / 1e7
		u["process_start_time_seconds"] = float64(began.Nanoseconds()) / 1e9
	}
	var handles uint32
	if ok, _, _ := handleCount.Call(uintptr(self), uintptr(unsafe.Pointer(&handles))); ok != 0 {
		u["process_open_fds"] = float64(handles)
	}
	m := memory{size: uint32(unsafe.Sizeof(memory{}))}
	if ok, _, _ := memoryInfo.Call(uintptr(self), uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m)); ok != 0 {
		u["process_resident_memory_bytes"] = float64(m.workingSet)
		u["process_virtual_memory_bytes"] = float64(m.used)
	}
	return u
}
