package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes away what this process will never need, for good: memory beyond a bound, new
// programs, and, for all but the OCI worker, sockets.
func confine(network bool, memory uint64) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	own, err := addressSpace()
	if err != nil {
		return err
	}
	limits := map[int]uint64{
		unix.RLIMIT_AS:     own + memory,
		unix.RLIMIT_CORE:   0,
		unix.RLIMIT_NOFILE: 256,
		unix.RLIMIT_FSIZE:  1 << 30,
	}
	for resource, bound := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: bound, Max: bound}); err != nil {
			return err
		}
	}
	go endOnSignal()
	return forbid(network)
}

// endOnSignal does what the kernel would do by itself, if Go did not ignore the signal.
func endOnSignal() {
	exceeded := make(chan os.Signal, 1)
	signal.Notify(exceeded, unix.SIGXCPU)
	fmt.Fprintln(os.Stderr, <-exceeded, "SIGXCPU")
	os.Exit(1)
}

// addressSpace is what the Go runtime has reserved, most of which it never touches.
func addressSpace() (uint64, error) {
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var pages uint64
	_, err = fmt.Sscan(string(content), &pages)
	return pages * uint64(os.Getpagesize()), err
}

// limitCPU lets the kernel end us when a request burns more than its share.
func limitCPU(seconds uint64) error {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &limit); err != nil {
		return err
	}
	limit.Cur = min(uint64(used.Utime.Sec+used.Stime.Sec)+seconds+1, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_CPU, &limit)
}

// forbid installs a filter that refuses system calls; it holds for all threads and can't be undone.
func forbid(network bool) error {
	refused := []uint32{
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_IO_URING_SETUP,
		unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
	}
	if !network {
		refused = append(refused, unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND)
	}
	architecture, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return fmt.Errorf("seccomp: unknown architecture %s", runtime.GOARCH)
	}
	// Calls in the manner of another architecture have other numbers: none of them is ours.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: architecture},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: 0x40000000},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	for _, number := range refused {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, code := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if code != 0 {
		return fmt.Errorf("seccomp: %w", code)
	}
	return nil
}
