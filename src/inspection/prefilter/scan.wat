;; The SIMD pass of the prefilter, sixteen characters at a time: records every position that prefilter.ts must check,
;; and some that it need not. simd.ts fills the tables, copies the text and reads the positions.
;; After an edit, `npm run assemble` writes scan-module.ts.
;;
;; Memory, by byte address; simd.ts has the same numbers:
;;        0  kinds of characters by lower nibble, one bit for each kind
;;       16  kinds of characters by upper nibble
;;       32  eight bytes that fold both cases of a letter into one
;;       64  for each of four positions: the buckets of anchors that accept a character class there, one bit for each
;;           bucket, in sixteen bytes for the lower half of the classes and sixteen for the upper half
;;     1024  by key of three characters: the number of its list of anchors, 0 for none
;;    33792  by a sign or digit and the next character: 0 no check, 1 check, 2 the last digit of a group, 3 a digit
;;           before another digit, 4 the backslash of an escaped line end
;;    50176  by number: the address of a list of anchors
;;    51200  the lists: for each anchor its mask and value, eight bytes each, and eight bytes that are not zero where it is
;;           ignored inside a word; ended by an empty mask
;;   118784  by number of a list and class of a fourth character: 4, the size of a position, where an anchor of the list
;;           may have it, and 0 elsewhere
;;   126976  one bit for each character of the range that is scanned: signs and digits
;;   128000  the same: characters that may be the third of an anchor
;;   131072  positions found, four bytes each
;;   196672  the text, after a gap, because bytes before its first character are read too
;;   524288  a text beyond ASCII, two bytes a character
(module
  (memory (export "memory") 17)

  ;; Makes a text of $length characters one byte each: every one beyond ASCII becomes 0x7f.
  (func (export "narrow") (param $length i32)
    (local $at i32)
    (local $most v128)
    (local.set $most (i16x8.splat (i32.const 0x7f)))
    (loop $step
      (v128.store offset=196672
        (local.get $at)
        (i8x16.narrow_i16x8_u
          (i16x8.min_u
            (v128.load offset=524288 (i32.shl (local.get $at) (i32.const 1)))
            (local.get $most))
          (i16x8.min_u
            (v128.load offset=524304 (i32.shl (local.get $at) (i32.const 1)))
            (local.get $most))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $step (i32.lt_u (local.get $at) (local.get $length)))))

  ;; Scans from $from to $end. Returns the number of positions, or -1 where the range has more than 4112 characters (a
  ;; slice of prefilter.ts and a run before it). Therefore no write needs a check: the marks of a range take at most 522
  ;; of 1024 bytes each, and its positions, a sign and an anchor for each character and a run for every sixteen, at most
  ;; 34 of 65 KB. Vectors only mark what may need a check. The marks are followed afterwards, those of 64 characters at
  ;; a time and without a branch for each, because the processor cannot predict where they are.
  (func (export "scan") (param $from i32) (param $end i32) (result i32)
    (local $at i32)
    (local $marks i32) ;; where the marks of this step are stored
    (local $out i32) ;; where the next position is recorded, in bytes
    (local $before i32) ;; token characters before $at
    (local $ahead i32) ;; token characters from $at on
    (local $bits i32)
    (local $units v128)
    (local $kinds v128)
    (local $class v128)
    (local $buckets v128) ;; the buckets that match so far
    (local $five_bits v128)
    (local $fifth_bit v128)
    (local $low_half v128)
    (local $token_kinds v128)
    (local $checked_kinds v128) ;; digits and signs
    (local $nothing v128)
    (if (i32.gt_s (i32.sub (local.get $end) (local.get $from)) (i32.const 4112))
      (then (return (i32.const -1))))
    (local.set $at (local.get $from))
    (local.set $five_bits (i8x16.splat (i32.const 0x1f)))
    (local.set $fifth_bit (i8x16.splat (i32.const 0x10)))
    (local.set $low_half (i8x16.splat (i32.const 0x0f)))
    (local.set $token_kinds (i8x16.splat (i32.const 0x1f)))
    (local.set $checked_kinds (i8x16.splat (i32.const 0xe4)))

    (block $done
      (loop $step
        (br_if $done (i32.ge_s (local.get $at) (local.get $end)))

        ;; The kinds of the sixteen characters, by a look-up for each nibble.
        (local.set $units (v128.load offset=196672 (local.get $at)))
        (local.set $kinds
          (v128.and
            (i8x16.swizzle
              (v128.load (i32.const 0))
              (v128.and (local.get $units) (local.get $low_half)))
            (i8x16.swizzle
              (v128.load offset=16 (i32.const 0))
              (i8x16.shr_u (local.get $units) (i32.const 4)))))

        ;; A run of token characters is recorded once, when it reaches sixteen, and flagged with bit 30.
        (local.set $bits
          (i8x16.bitmask
            (i8x16.ne
              (v128.and (local.get $kinds) (local.get $token_kinds))
              (local.get $nothing))))
        (local.set $ahead (i32.ctz (i32.xor (local.get $bits) (i32.const 0x1ffff))))
        (if
          (i32.and
            (i32.lt_u (local.get $before) (i32.const 16))
            (i32.ge_u (i32.add (local.get $before) (local.get $ahead)) (i32.const 16)))
          (then
            (i32.store offset=131072
              (local.get $out)
              (i32.or (local.get $at) (i32.const 0x40000000)))
            (local.set $out (i32.add (local.get $out) (i32.const 4)))))
        (if (i32.eq (local.get $bits) (i32.const 0xffff))
          (then (local.set $before (i32.add (local.get $before) (i32.const 16))))
          (else
            (local.set $before
              (i32.clz
                (i32.xor
                  (i32.shl (local.get $bits) (i32.const 16))
                  (i32.const 0xffff0000))))))

        ;; Signs and digits.
        (i32.store16 offset=126976
          (local.get $marks)
          (i8x16.bitmask
            (i8x16.ne
              (v128.and (local.get $kinds) (local.get $checked_kinds))
              (local.get $nothing))))

        ;; The buckets that accept the four characters from two before each position to one after it.
        (local.set $class (v128.and (v128.load offset=196670 (local.get $at)) (local.get $five_bits)))
        (local.set $buckets
          (v128.or
            (i8x16.swizzle (v128.load offset=64 (i32.const 0)) (local.get $class))
            (i8x16.swizzle
              (v128.load offset=80 (i32.const 0))
              (v128.xor (local.get $class) (local.get $fifth_bit)))))
        (local.set $class (v128.and (v128.load offset=196671 (local.get $at)) (local.get $five_bits)))
        (local.set $buckets
          (v128.and
            (local.get $buckets)
            (v128.or
              (i8x16.swizzle (v128.load offset=96 (i32.const 0)) (local.get $class))
              (i8x16.swizzle
                (v128.load offset=112 (i32.const 0))
                (v128.xor (local.get $class) (local.get $fifth_bit))))))
        (local.set $class (v128.and (local.get $units) (local.get $five_bits)))
        (local.set $buckets
          (v128.and
            (local.get $buckets)
            (v128.or
              (i8x16.swizzle (v128.load offset=128 (i32.const 0)) (local.get $class))
              (i8x16.swizzle
                (v128.load offset=144 (i32.const 0))
                (v128.xor (local.get $class) (local.get $fifth_bit))))))
        (local.set $class (v128.and (v128.load offset=196673 (local.get $at)) (local.get $five_bits)))
        (local.set $buckets
          (v128.and
            (local.get $buckets)
            (v128.or
              (i8x16.swizzle (v128.load offset=160 (i32.const 0)) (local.get $class))
              (i8x16.swizzle
                (v128.load offset=176 (i32.const 0))
                (v128.xor (local.get $class) (local.get $fifth_bit))))))

        (i32.store16 offset=128000
          (local.get $marks)
          (i8x16.bitmask (i8x16.ne (local.get $buckets) (local.get $nothing))))

        (local.set $marks (i32.add (local.get $marks) (i32.const 2)))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $step)))

    ;; The marks are read eight bytes at a time.
    (i64.store offset=126976 (local.get $marks) (i64.const 0))
    (i64.store offset=128000 (local.get $marks) (i64.const 0))
    (i32.shr_u
      (call $anchors
        (local.get $from)
        (local.get $marks)
        (call $signs (local.get $from) (local.get $marks) (local.get $out)))
      (i32.const 2)))

  ;; Records the marked signs and digits that need a check. Returns $out as it is then.
  (func $signs (param $from i32) (param $marked i32) (param $out i32) (result i32)
    (local $word i32)
    (local $bits i64) ;; marks that are still to be followed, one bit for each character
    (local $position i32)
    (local $pair i32)
    (local $next i32)
    (local $last i32)
    (local $group v128)
    (local.set $last (local.get $out))
    (local.set $next (local.get $out))

    ;; Keeps those that the table of pairs does not pass, with the kind of the pair above bit 18.
    (loop $next_word
      (local.set $bits (i64.load offset=126976 (local.get $word)))
      (block $no_more_bits
        (loop $next_bit
          (br_if $no_more_bits (i64.eqz (local.get $bits)))
          (local.set $position
            (i32.add (local.get $from) (i32.wrap_i64 (i64.ctz (local.get $bits)))))
          (local.set $bits
            (i64.and (local.get $bits) (i64.sub (local.get $bits) (i64.const 1))))
          (local.set $pair
            (i32.load8_u offset=33792
              (i32.or
                (i32.shl (i32.load8_u offset=196672 (local.get $position)) (i32.const 7))
                (i32.load8_u offset=196673 (local.get $position)))))
          (i32.store offset=131072
            (local.get $last)
            (i32.or (local.get $position) (i32.shl (local.get $pair) (i32.const 19))))
          (local.set $last
            (i32.add
              (local.get $last)
              (i32.shl (i32.ne (local.get $pair) (i32.const 0)) (i32.const 2))))
          (br $next_bit)))
      (local.set $from (i32.add (local.get $from) (i32.const 64)))
      (local.set $word (i32.add (local.get $word) (i32.const 8)))
      (br_if $next_word (i32.lt_u (local.get $word) (local.get $marked))))

    (block $done
      (loop $next_sign
        (br_if $done (i32.eq (local.get $next) (local.get $last)))
        (local.set $position (i32.load offset=131072 (local.get $next)))
        (local.set $next (i32.add (local.get $next) (i32.const 4)))
        (local.set $pair (i32.shr_u (local.get $position) (i32.const 19)))
        (local.set $position (i32.and (local.get $position) (i32.const 0x7ffff)))
        (block $record
          (br_if $record (i32.eq (local.get $pair) (i32.const 1)))
          ;; An escaped line end counts where a blank or another backslash follows it.
          (if (i32.eq (local.get $pair) (i32.const 4))
            (then
              (br_if $record
                (i32.lt_u
                  (i32.load8_u offset=196674 (local.get $position))
                  (i32.const 0x21)))
              (br_if $record
                (i32.eq
                  (i32.load8_u offset=196674 (local.get $position))
                  (i32.const 0x5c)))
              (br $next_sign)))
          ;; Two letters and two digits, with which an IBAN begins.
          (br_if $record
            (i32.and
              (i32.lt_u
                (i32.sub (i32.load8_u offset=196671 (local.get $position)) (i32.const 0x30))
                (i32.const 10))
              (i32.and
                (i32.lt_u
                  (i32.sub
                    (i32.or
                      (i32.load8_u offset=196670 (local.get $position))
                      (i32.const 0x20))
                    (i32.const 0x61))
                  (i32.const 26))
                (i32.lt_u
                  (i32.sub
                    (i32.or
                      (i32.load8_u offset=196669 (local.get $position))
                      (i32.const 0x20))
                    (i32.const 0x61))
                  (i32.const 26)))))
          (br_if $next_sign (i32.ne (local.get $pair) (i32.const 2)))
          ;; The last digit of a group counts where it ends eleven digits, blanks, dashes and dots: the length of
          ;; the shortest personal number.
          (local.set $group (v128.load offset=196657 (local.get $position)))
          (br_if $next_sign
            (i32.ne
              (i32.and
                (i8x16.bitmask
                  (v128.or
                    (v128.or
                      (i8x16.lt_u
                        (i8x16.sub (local.get $group) (i8x16.splat (i32.const 0x30)))
                        (i8x16.splat (i32.const 10)))
                      (i8x16.eq (local.get $group) (i8x16.splat (i32.const 0x20))))
                    (v128.or
                      (i8x16.eq (local.get $group) (i8x16.splat (i32.const 0x2d)))
                      (i8x16.eq (local.get $group) (i8x16.splat (i32.const 0x2e))))))
                (i32.const 0xffe0))
              (i32.const 0xffe0))))
        (i32.store offset=131072 (local.get $out) (local.get $position))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (br $next_sign)))
    (local.get $out))

  ;; Records the marked positions at which an anchor may be. Returns $out as it is then.
  (func $anchors (param $from i32) (param $marked i32) (param $out i32) (result i32)
    (local $word i32)
    (local $bits i64) ;; marks that are still to be followed, one bit for each character
    (local $position i32)
    (local $four i32) ;; the characters from two before the position
    (local $list i32)
    (local $entry i32)
    (local $next i32)
    (local $last i32)
    (local $before_anchor i32) ;; the character before an anchor
    (local.set $last (local.get $out))
    (local.set $next (local.get $out))

    ;; Keeps those with the first four classes of an anchor, with the number of its list above bit 18.
    (loop $next_word
      (local.set $bits (i64.load offset=128000 (local.get $word)))
      (block $no_more_bits
        (loop $next_bit
          (br_if $no_more_bits (i64.eqz (local.get $bits)))
          (local.set $position
            (i32.add (local.get $from) (i32.wrap_i64 (i64.ctz (local.get $bits)))))
          (local.set $bits
            (i64.and (local.get $bits) (i64.sub (local.get $bits) (i64.const 1))))
          (local.set $four (i32.load offset=196670 (local.get $position)))
          (local.set $list
            (i32.load8_u offset=1024
              (i32.or
                (i32.or
                  (i32.and
                    (i32.shl (local.get $four) (i32.const 10))
                    (i32.const 0x7c00))
                  (i32.and
                    (i32.shr_u (local.get $four) (i32.const 3))
                    (i32.const 0x3e0)))
                (i32.and
                  (i32.shr_u (local.get $four) (i32.const 16))
                  (i32.const 0x1f)))))
          (i32.store offset=131072
            (local.get $last)
            (i32.or (local.get $position) (i32.shl (local.get $list) (i32.const 19))))
          (local.set $last
            (i32.add
              (local.get $last)
              (i32.load8_u offset=118784
                (i32.or
                  (i32.shl (local.get $list) (i32.const 5))
                  (i32.and (i32.shr_u (local.get $four) (i32.const 24)) (i32.const 0x1f))))))
          (br $next_bit)))
      (local.set $from (i32.add (local.get $from) (i32.const 64)))
      (local.set $word (i32.add (local.get $word) (i32.const 8)))
      (br_if $next_word (i32.lt_u (local.get $word) (local.get $marked))))

    ;; Eight characters are compared with each anchor that has the key of the first three, and its surroundings are
    ;; looked at if it has to begin a word (anchors.ts).
    (block $done
      (loop $next_anchor
        (br_if $done (i32.eq (local.get $next) (local.get $last)))
        (local.set $position (i32.load offset=131072 (local.get $next)))
        (local.set $next (i32.add (local.get $next) (i32.const 4)))
        (local.set $entry
          (i32.load offset=50176
            (i32.shl (i32.shr_u (local.get $position) (i32.const 19)) (i32.const 2))))
        (local.set $position (i32.and (local.get $position) (i32.const 0x7ffff)))
        (block $record
          (loop $next_entry
            (br_if $next_anchor (i64.eqz (i64.load (local.get $entry))))
            (block $not_this
              (br_if $not_this
                (i64.ne
                  (i64.and
                    (i64.or
                      (i64.load offset=196670 (local.get $position))
                      (i64.load offset=32 (i32.const 0)))
                    (i64.load (local.get $entry)))
                  (i64.load offset=8 (local.get $entry))))
              (br_if $record (i64.eqz (i64.load offset=16 (local.get $entry))))
              ;; Inside a word: after a letter or digit that no backslash precedes.
              (br_if $record
                (i32.eq (i32.load8_u offset=196668 (local.get $position)) (i32.const 0x5c)))
              (local.set $before_anchor (i32.load8_u offset=196669 (local.get $position)))
              (br_if $record
                (i32.and
                  (i32.ge_u
                    (i32.sub (local.get $before_anchor) (i32.const 0x30))
                    (i32.const 10))
                  (i32.ge_u
                    (i32.sub
                      (i32.or (local.get $before_anchor) (i32.const 0x20))
                      (i32.const 0x61))
                    (i32.const 26)))))
            (local.set $entry (i32.add (local.get $entry) (i32.const 24)))
            (br $next_entry)))
        (i32.store offset=131072 (local.get $out) (local.get $position))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (br $next_anchor)))
    (local.get $out)))
