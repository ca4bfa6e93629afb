// Command chainkit does what a test of a chain needs from the Ethereum libraries: it names a
// genesis block before any node has made it, and it signs transactions.
//
//	chainkit genesis-hash < genesis.json
//	CHAINKIT_KEY=… chainkit drain L1-URL RECIPIENT
//	CHAINKIT_KEY=… chainkit deploy-factory L1-URL
package main

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

const patience = 45 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := execute(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer)
}

func execute(ctx context.Context, arguments []string) (string, error) {
	switch {
	case len(arguments) == 1 && arguments[0] == "genesis-hash":
		return genesisHash(os.Stdin)
	case len(arguments) == 3 && arguments[0] == "drain":
		client, key, err := signer(ctx, arguments[1])
		if err != nil {
			return "", err
		}
		return drain(ctx, client, key, common.HexToAddress(arguments[2]))
	case len(arguments) == 2 && arguments[0] == "deploy-factory":
		client, key, err := signer(ctx, arguments[1])
		if err != nil {
			return "", err
		}
		return deployFactory(ctx, client, key)
	}
	return "", fmt.Errorf("not a command: %q", arguments)
}

// genesisHash is the hash of the block that `geth init` makes of a genesis file.
func genesisHash(file io.Reader) (string, error) {
	var genesis core.Genesis
	if err := json.NewDecoder(file).Decode(&genesis); err != nil {
		return "", err
	}
	return genesis.ToBlock().Hash().Hex(), nil
}

func signer(ctx context.Context, url string) (*ethclient.Client, *ecdsa.PrivateKey, error) {
	key, err := crypto.HexToECDSA(os.Getenv("CHAINKIT_KEY"))
	if err != nil {
		return nil, nil, fmt.Errorf("CHAINKIT_KEY: %w", err)
	}
	client, err := ethclient.DialContext(ctx, url)
	return client, key, err
}
