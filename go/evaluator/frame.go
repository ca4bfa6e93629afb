package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// A frame is the length of a JSON text, in four bytes, and the text.

func readFrame(in *bufio.Reader, largest int) ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if int64(size) > int64(largest) {
		return nil, fmt.Errorf("a request of %d bytes", size)
	}
	frame := make([]byte, size)
	_, err := io.ReadFull(in, frame)
	return frame, err
}

func writeFrame(out *bufio.Writer, answer response, largest int) error {
	text, err := json.Marshal(answer)
	if err != nil {
		text, err = json.Marshal(response{Failure: &failure{Kind: badModule, Message: "the result is no JSON: " + err.Error()}})
	}
	if err != nil {
		return err
	}
	if tooDeep(text, mostLevels+10) {
		tooMuch := fmt.Sprintf("the result has more than %d levels", mostLevels)
		text, _ = json.Marshal(response{Failure: &failure{Kind: overLimit, Message: tooMuch}})
	}
	if len(text) > largest {
		tooMuch := fmt.Sprintf("the result has %d bytes and %d are allowed", len(text), largest)
		text, _ = json.Marshal(response{Failure: &failure{Kind: overLimit, Message: tooMuch}})
	}
	var header [4]byte
	binary.BigEndian.PutUint32(header[:], uint32(len(text)))
	if _, err := out.Write(header[:]); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	return out.Flush()
}
