//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The first program of the README runs unchanged.
func TestTheReadmeRuns(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	named := regexp.MustCompile(`\[\]string\{"http[^}]*\}`)
	here := named.ReplaceAllString(string(code[1]), fmt.Sprintf("[]string{%q, %q, %q}", nodes[0], nodes[1], nodes[2]))
	equal(t, here != string(code[1]), true)
	program := filepath.Join(t.TempDir(), "main.go")
	must(t, os.WriteFile(program, []byte(here), 0o600))
	command := exec.Command("go", "run", program)
	command.Dir = ".."
	command.Stderr = os.Stderr
	said, err := command.Output()
	must(t, err)
	equal(t, strings.HasPrefix(string(said), "this process cleans up, with token "), true)
}
