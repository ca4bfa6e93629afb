// Command program is what the test pods run: a server, a client, a writer and a reader in one static file.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	switch os.Args[1] {
	case "serve": // serve TEXT
		http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, os.Args[2]) })
		exitOn(http.ListenAndServe(":8080", nil))
	case "get": // get URL: prints the body once it can be had
		client := http.Client{Timeout: 2 * time.Second}
		for {
			answer, err := client.Get(os.Args[2])
			if err == nil {
				_, err = io.Copy(os.Stdout, answer.Body)
				exitOn(err)
				return
			}
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(300 * time.Millisecond)
		}
	case "write": // write FILE TEXT: writes and prints
		exitOn(os.WriteFile(os.Args[2], []byte(os.Args[3]), 0o600))
		fmt.Print(os.Args[3])
	case "read": // read FILE: prints its content
		content, err := os.ReadFile(os.Args[2])
		exitOn(err)
		fmt.Print(string(content))
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
