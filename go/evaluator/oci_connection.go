package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

type login struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Token    string `json:"token"`
}

// connection is how registries may be reached: who we are to each, and which addresses are taboo.
type connection struct {
	PlainHTTP bool             `json:"plainHttp"`
	Authority string           `json:"authority"`
	Logins    map[string]login `json:"logins"`
	Refused   []netip.Prefix   `json:"refused"`
	Seconds   float64          `json:"seconds"`
}

// deadline ends a request shortly before whoever asked would end this process.
func (c connection) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(c.Seconds*float64(time.Second)))
}

func (c connection) client() (*http.Client, error) {
	transport, err := c.transport(math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, CheckRedirect: fewRedirects}, nil
}

// guard sends nothing without TLS unless that is wanted, and receives only so many bytes.
type guard struct {
	inner http.RoundTripper
	plain bool
	left  atomic.Int64
}

func (g *guard) RoundTrip(asked *http.Request) (*http.Response, error) {
	if asked.URL.Scheme != "https" && !g.plain {
		return nil, &failure{Kind: denied, Message: "the registry leads to an address without TLS"}
	}
	answer, err := g.inner.RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	answer.Body = &counted{ReadCloser: answer.Body, guard: g}
	return answer, nil
}

func (g *guard) exceeded() bool { return g.left.Load() < 0 }

type counted struct {
	io.ReadCloser
	guard *guard
}

func (c *counted) Read(into []byte) (int, error) {
	size, err := c.ReadCloser.Read(into)
	if c.guard.left.Add(-int64(size)) < 0 {
		return 0, &failure{Kind: overLimit, Message: "the registry sends more than it may"}
	}
	return size, err
}

// transport checks the address that is dialled, not one that was looked up before.
func (c connection) transport(largest int64) (*guard, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: c.allowed}
	transport := &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableKeepAlives:     true,
		ForceAttemptHTTP2:     true,
	}
	if c.Authority != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(c.Authority)) {
			return nil, untrusted("the certificate authority of the pull secret is no PEM certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	guarded := &guard{inner: transport, plain: c.PlainHTTP}
	guarded.left.Store(largest)
	return guarded, nil
}

func (c connection) allowed(_, address string, _ syscall.RawConn) error {
	dialled, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	for _, network := range c.Refused {
		if network.Contains(dialled.Addr().Unmap()) {
			message := fmt.Sprintf("%s is not an address that a source may have", dialled.Addr())
			return &failure{Kind: denied, Message: message, Problems: []problem{{Path: aboutAddress, Message: message}}}
		}
	}
	return nil
}

// What a refusal is about, when it is not the credentials.
const (
	aboutAddress   = "address"
	aboutAuthority = "authority"
)

func untrusted(message string) *failure {
	return &failure{Kind: denied, Message: message, Problems: []problem{{Path: aboutAuthority, Message: message}}}
}

// fewRedirects ends loops; that none leaves TLS is up to the guard, and oras keeps credentials home.
func fewRedirects(_ *http.Request, before []*http.Request) error {
	if len(before) > 5 {
		return errors.New("too many redirects")
	}
	return nil
}
