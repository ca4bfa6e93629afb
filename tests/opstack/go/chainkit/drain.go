package main

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
)

const between = 200 * time.Millisecond

var (
	transferGas = new(big.Int).SetUint64(params.TxGas)
	// outbidding is above what the programs of a chain ever raise their own price to, 100 gwei: with
	// less they would go on replacing a drain that waits to be mined.
	outbidding = big.NewInt(1000 * params.GWei)
)

// drain sends what an account has to a recipient, and returns what is left once that pays for
// nothing more: 0, unless the account had next to nothing.
//
// The owner of the account may be sending too, so an attempt can fail or be overtaken: the next
// one sees what is left.
func drain(ctx context.Context, client *ethclient.Client, key *ecdsa.PrivateKey, to common.Address) (string, error) {
	from := crypto.PubkeyToAddress(key.PublicKey)
	var refused error
	for {
		balance, err := client.BalanceAt(ctx, from, nil)
		if err != nil {
			return "", fmt.Errorf("%w (last refusal: %v)", err, refused)
		}
		price, err := affordable(ctx, client, balance)
		if err != nil {
			return "", err
		}
		if price == nil {
			return balance.String(), nil
		}
		refused = sendAll(ctx, client, key, transfer{to: to, balance: balance, price: price})
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s still has %s wei: %w (last refusal: %v)", from, balance, ctx.Err(), refused)
		case <-time.After(between):
		}
	}
}

// affordable is the price to offer for a unit of gas, or nil if the balance pays for no transfer.
func affordable(ctx context.Context, client *ethclient.Client, balance *big.Int) (*big.Int, error) {
	going, err := client.SuggestGasPrice(ctx)
	if err != nil {
		return nil, err
	}
	price := new(big.Int).Div(balance, transferGas)
	if price.Cmp(outbidding) > 0 {
		price.Set(outbidding)
	}
	if price.Cmp(going) < 0 {
		return nil, nil
	}
	return price, nil
}

type transfer struct {
	to             common.Address
	balance, price *big.Int
}

// sendAll takes the next nonce that is mined, in place of anything of the owner's that waits there.
// A legacy transaction costs its exact price, so nothing is left over.
func sendAll(ctx context.Context, client *ethclient.Client, key *ecdsa.PrivateKey, all transfer) error {
	nonce, err := client.NonceAt(ctx, crypto.PubkeyToAddress(key.PublicKey), nil)
	if err != nil {
		return err
	}
	chain, err := client.ChainID(ctx)
	if err != nil {
		return err
	}
	signed, err := types.SignNewTx(key, types.LatestSignerForChainID(chain), &types.LegacyTx{
		Nonce:    nonce,
		GasPrice: all.price,
		Gas:      params.TxGas,
		To:       &all.to,
		Value:    new(big.Int).Sub(all.balance, new(big.Int).Mul(all.price, transferGas)),
	})
	if err != nil {
		return err
	}
	return client.SendTransaction(ctx, signed)
}
