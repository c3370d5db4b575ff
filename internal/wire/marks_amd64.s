//go:build amd64 && !purego

#include "textflag.h"

DATA quotes<>+0(SB)/8, $0x2222222222222222
DATA quotes<>+8(SB)/8, $0x2222222222222222
GLOBL quotes<>(SB), RODATA|NOPTR, $16
DATA slashes<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA slashes<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c
GLOBL slashes<>(SB), RODATA|NOPTR, $16
DATA controls<>+0(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA controls<>+8(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL controls<>(SB), RODATA|NOPTR, $16

// MARK16 puts the marks of 16 bytes into reg. A byte is a control character
// when it is its own minimum with 0x1f.
#define MARK16(off, reg) \
	MOVOU    off(SI), X0 \
	POR      X0, X7      \
	MOVO     X0, X1      \
	MOVO     X0, X2      \
	MOVO     X0, X3      \
	PCMPEQB  X4, X1      \
	PCMPEQB  X5, X2      \
	PMINUB   X6, X3      \
	PCMPEQB  X0, X3      \
	POR      X1, X2      \
	POR      X2, X3      \
	PMOVMSKB X3, reg

// func markBlocks(out *[maxBlocks]uint64, p unsafe.Pointer, blocks int) (hi uint64)
TEXT ·markBlocks(SB), NOSPLIT, $0-32
	MOVQ  out+0(FP), DI
	MOVQ  p+8(FP), SI
	MOVQ  blocks+16(FP), CX
	MOVO  quotes<>(SB), X4
	MOVO  slashes<>(SB), X5
	MOVO  controls<>(SB), X6
	PXOR  X7, X7
	TESTQ CX, CX
	JLE   done

loop:
	MARK16(0, AX)
	MARK16(16, BX)
	MARK16(32, DX)
	MARK16(48, R8)
	SHLQ $16, BX
	SHLQ $32, DX
	SHLQ $48, R8
	ORQ  BX, AX
	ORQ  R8, DX
	ORQ  DX, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  loop

done:
	PMOVMSKB X7, AX
	NEGQ     AX       // all ones when there was any
	SBBQ     AX, AX
	MOVQ     AX, hi+24(FP)
	RET
