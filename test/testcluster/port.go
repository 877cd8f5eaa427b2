package testcluster

import (
	"fmt"
	"syscall"
	"testing"
)

// ReservePort returns an address on loopback that is the test's own until it ends, whether
// somebody serves it or not: a socket is bound to it that does not listen. The system gives
// the port to nobody who asks for any port, and lets those listen who ask for this one.
func ReservePort(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			t.Errorf("free port: %v", err)
		}
	})
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	at, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("reserve port: the address is a %T", name)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.Port)
}
