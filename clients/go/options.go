package eldest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// The time of one call, with all its attempts and pauses; the wait of a call that waits is added.
	callTimeout = 10 * time.Second
	// The time of one attempt at one node. A dead machine does not refuse, it stays silent: the other nodes must have
	// their turn.
	attemptTimeout = 3 * time.Second
)

// Option is a setting of a Client.
type Option func(*settings) error

type settings struct {
	token   string
	secret  string
	tls     *tls.Config
	call    time.Duration
	attempt time.Duration
	clock   clock
}

// WithToken sets the token that every call carries: the admin token, or a client's.
func WithToken(token string) Option {
	return func(s *settings) error {
		s.token = token
		return visible("token", token)
	}
}

// WithSecret is for clients that have to be one holder. Each client draws its own secret, and shows it with its calls
// about roles. Give the same secret to a process that has to speak for what an earlier life of it held.
func WithSecret(secret string) Option {
	return func(s *settings) error {
		s.secret = secret
		return visible("secret", secret)
	}
}

// WithTLS says which certificates to trust, and which to show, for nodes at https://.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) error {
		s.tls = config.Clone()
		return nil
	}
}

// WithTimeouts limits one call with all its attempts to call (10 s by default), and one attempt at one node to attempt
// (3 s). A context that ends sooner ends a call sooner.
func WithTimeouts(call, attempt time.Duration) Option {
	return func(s *settings) error {
		if call <= 0 || attempt <= 0 {
			return errors.New("eldest: a call and an attempt need time")
		}
		s.call, s.attempt = call, attempt
		return nil
	}
}

// visible checks text for a header: it must not be empty, and each character must be allowed there.
func visible(what, text string) error {
	if text == "" || len(text) > 4096 {
		return fmt.Errorf("eldest: a %s is a text of 1 to 4096 characters", what)
	}
	for _, char := range []byte(text) {
		if char < ' ' || char > '~' {
			return fmt.Errorf("eldest: a %s is visible ASCII", what)
		}
	}
	return nil
}

// nodesOf checks the URLs of nodes; without any, it takes those that the environment names.
func nodesOf(nodes []string) ([]string, error) {
	if len(nodes) == 0 {
		nodes = nodesOfEnvironment()
	}
	bases := make([]string, 0, len(nodes))
	for _, node := range nodes {
		node = strings.TrimSpace(node)
		at, err := url.Parse(node)
		if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") || at.RawQuery != "" || at.User != nil {
			return nil, fmt.Errorf("eldest: %q is no node: name it as http://host:9000", node)
		}
		bases = append(bases, strings.TrimRight(at.String(), "/"))
	}
	if len(bases) == 0 {
		return nil, errors.New("eldest: name at least one node, as http://host:9000, here or in ELDEST_URL")
	}
	return bases, nil
}

func nodesOfEnvironment() []string {
	for _, variable := range []string{"ELDEST_URL", "ELDEST_NODES"} {
		if urls := os.Getenv(variable); urls != "" {
			return strings.Split(urls, ",")
		}
	}
	return nil
}
