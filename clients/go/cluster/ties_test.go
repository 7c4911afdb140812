//go:build cluster

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"eldest.dev/eldest"
)

// TestMain can also be a holder: the process that a test starts in order to kill it.
func TestMain(m *testing.M) {
	if role := os.Getenv("ELDEST_TEST_HOLDER"); role != "" {
		holder(role)
	}
	os.Exit(m.Run())
}

// holder holds the role until it is killed. It prints its token, and then, for each line that it gets, whether it
// believes.
func holder(role string) {
	ttl, err := time.ParseDuration(os.Getenv("ELDEST_TEST_TTL"))
	if err == nil {
		err = holds(role, ttl)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func holds(role string, ttl time.Duration) error {
	made, err := eldest.New(nodes)
	if err != nil {
		return err
	}
	held, err := made.Lock(ctx, role, eldest.LockOptions{TTL: ttl})
	if err != nil {
		return err
	}
	fmt.Println(held.Token())
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		fmt.Println(held.Held())
	}
	return held.Err()
}

// child is a holder in a separate process.
type child struct {
	*exec.Cmd
	asked io.Writer
	said  *bufio.Reader
}

func childOf(t *testing.T, role, ttl string, nodes ...string) *child {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "ELDEST_TEST_HOLDER="+role, "ELDEST_TEST_TTL="+ttl, "ELDEST_NODES="+strings.Join(nodes, ","))
	command.Stderr = os.Stderr
	asked, err := command.StdinPipe()
	must(t, err)
	said, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return &child{command, asked, bufio.NewReader(said)}
}

func (c *child) says(t *testing.T) string {
	t.Helper()
	line, err := c.said.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

func (c *child) believes(t *testing.T) string {
	t.Helper()
	_, err := fmt.Fprintln(c.asked)
	must(t, err)
	return c.says(t)
}

func TestAHolderThatWasStoppedDoesNotBelieveAtItsFirstLook(t *testing.T) {
	role := unique("stopped")
	first := childOf(t, role, "8s", nodes...)
	first.says(t)
	equal(t, first.believes(t), "true")
	must(t, first.Process.Signal(syscall.SIGSTOP))
	next := lock(t, client(t, 1), role, eldest.LockOptions{Wait: 60 * time.Second})
	must(t, first.Process.Signal(syscall.SIGCONT))
	equal(t, first.believes(t), "false")
	equal(t, next.Held(), true)
}

func TestAHolderThatIsKilledIsFollowedLongBeforeItsTTLIsOver(t *testing.T) {
	role := unique("killed")
	way := wayTo(t, nodes[1])
	child := childOf(t, role, "1h", nodes[0], way.url)
	token, err := strconv.ParseUint(child.says(t), 10, 64)
	must(t, err)
	next := election(t, 1, role, eldest.ElectionOptions{TTL: time.Hour})
	must(t, next.Start(ctx))
	equal(t, next.IsLeader(), false)
	way.serves(t)
	must(t, child.Process.Kill())
	// The ttl is an hour, so only the closed connection can have ended the lease.
	equal(t, leads(t, next) > token, true)
}

func TestTheWayToTheNodeThatItIsTiedToIsCutAndItHoldsOn(t *testing.T) {
	role := unique("tie-cut")
	way := wayTo(t, nodes[1])
	held := lock(t, clientOf(t, []string{nodes[0], way.url}), role, eldest.LockOptions{TTL: time.Hour})
	way.serves(t)
	way.cut()
	// If the old number were still the newest, the node that served it would end the lease: the lock outlasts that
	// time.
	_, err := client(t, 0).Lock(ctx, role, eldest.LockOptions{Wait: 3 * time.Second})
	equal(t, errors.Is(err, eldest.ErrHeld), true)
	equal(t, held.Held(), true)
	info, err := client(t, 0).Roles.Get(ctx, role, "")
	must(t, err)
	equal(t, info.Token, held.Token())
}

func TestCutOffFromAllNodesItHasStoppedBelievingWhenAnotherHasTheRole(t *testing.T) {
	role := unique("cut-off")
	calls, tie := wayTo(t, nodes[0]), wayTo(t, nodes[1])
	held, err := clientOf(t, []string{calls.url, tie.url}).Lock(ctx, role, eldest.LockOptions{TTL: time.Hour})
	must(t, err)
	tie.serves(t)
	equal(t, held.Held(), true)
	calls.cut()
	tie.cut()
	taken := lock(t, client(t, 1), role, eldest.LockOptions{Wait: 60 * time.Second})
	equal(t, held.Held(), false)
	equal(t, taken.Token() > held.Token(), true)
	// The context has ended and no node can be reached.
	gone, end := context.WithCancel(ctx)
	end()
	equal(t, errors.Is(held.Release(gone), eldest.ErrUnavailable), true)
}
