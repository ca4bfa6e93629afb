package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"fmt"

	"github.com/ethereum-optimism/optimism/op-e2e/bindings"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

const (
	gameType = 0
	// enoughGas spares the estimates, which would need each transaction mined before the next.
	enoughGas = 3_000_000
)

// deployFactory puts Optimism's own DisputeGameFactory on a chain and returns its address.
//
// Its games are stand-ins: they know who made which claim, which is all that a proposer asks.
func deployFactory(ctx context.Context, client *ethclient.Client, key *ecdsa.PrivateKey) (string, error) {
	chain, err := client.ChainID(ctx)
	if err != nil {
		return "", err
	}
	auth, err := bind.NewKeyedTransactorWithChainID(key, chain)
	if err != nil {
		return "", err
	}
	auth.Context, auth.GasLimit = ctx, enoughGas
	deployment := &deployment{auth: auth, client: client}
	address := deployment.factory()
	if err := deployment.settled(ctx); err != nil {
		return "", err
	}
	return address.Hex(), nil
}

// deployment sends one transaction after the other until one fails.
type deployment struct {
	auth   *bind.TransactOpts
	client *ethclient.Client
	sent   []*types.Transaction
	err    error
}

func (d *deployment) factory() common.Address {
	logic := d.contract(common.FromHex(bindings.DisputeGameFactoryMetaData.Bin))
	// The factory's own constructor gives it away to nobody: only a proxy of it can have an owner.
	address := d.contract(creating(proxyOf(logic)))
	game := d.contract(creating(claimHolder()))
	factory, err := bindings.NewDisputeGameFactoryTransactor(address, d.client)
	d.note(nil, err)
	d.call(func() (*types.Transaction, error) { return factory.Initialize(d.auth, d.auth.From) })
	d.call(func() (*types.Transaction, error) { return factory.SetImplementation(d.auth, gameType, game) })
	return address
}

func (d *deployment) contract(code []byte) (address common.Address) {
	d.call(func() (sent *types.Transaction, err error) {
		address, sent, _, err = bind.DeployContract(d.auth, abi.ABI{}, code, d.client)
		return sent, err
	})
	return address
}

func (d *deployment) call(send func() (*types.Transaction, error)) {
	if d.err == nil {
		d.note(send())
	}
}

func (d *deployment) note(sent *types.Transaction, err error) {
	if sent != nil {
		d.sent = append(d.sent, sent)
	}
	if d.err == nil {
		d.err = err
	}
}

// settled waits until everything is mined, and fails when something was reverted.
func (d *deployment) settled(ctx context.Context) error {
	for number, sent := range d.sent {
		receipt, err := bind.WaitMined(ctx, d.client, sent)
		if err != nil {
			return err
		}
		if receipt.Status != types.ReceiptStatusSuccessful {
			return fmt.Errorf("transaction %d of the deployment was reverted: %s", number, sent.Hash())
		}
	}
	return d.err
}

// creating is the code that makes a contract with the given code: 9 bytes that return the rest.
func creating(code []byte) []byte {
	return append([]byte{
		0x60, byte(len(code)), // PUSH1 length
		0x80,       // DUP1
		0x60, 0x09, // PUSH1 9, where the rest begins
		0x5f, // PUSH0
		0x39, // CODECOPY
		0x5f, // PUSH0
		0xf3, // RETURN
	}, code...)
}

// proxyOf is the minimal proxy of ERC-1167.
func proxyOf(logic common.Address) []byte {
	return bytes.Join([][]byte{
		common.FromHex("363d3d373d3d3d363d73"),
		logic.Bytes(),
		common.FromHex("5af43d82803e903d91602b57fd5bf3"),
	}, nil)
}

// claimHolder is a game without moves. The factory clones it with immutable arguments, which follow
// the four bytes of a call's selector: the creator (20 bytes), then the claim (32 bytes). Anything
// else that it is asked, above all to take its bond, it does by doing nothing.
func claimHolder() []byte {
	return bytes.Join([][]byte{
		common.FromHex("5f3560e01c"), // PUSH0 CALLDATALOAD PUSH1 224 SHR
		jumpIf("gameCreator()", 26),
		jumpIf("rootClaim()", 39),
		common.FromHex("00"),                         // STOP
		common.FromHex("5b60043560601c5f5260205ff3"), // 26: return the word at 4, shifted to an address
		common.FromHex("5b6018355f5260205ff3"),       // 39: return the word at 24
	}, nil)
}

// jumpIf is DUP1 PUSH4 selector EQ PUSH1 destination JUMPI.
func jumpIf(signature string, destination byte) []byte {
	selector := crypto.Keccak256([]byte(signature))[:4]
	return append(append([]byte{0x80, 0x63}, selector...), 0x14, 0x60, destination, 0x57)
}
