//! Text in memory of a fixed size: formatting without an allocation.

/// Text at the start of the buffer `bytes`.
pub(crate) struct Text<B> {
    bytes: B,
    len: usize,
}

impl<B> Text<B> {
    /// Makes an empty text.
    pub(crate) const fn new(bytes: B) -> Self {
        Self { bytes, len: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Text<B> {
    pub(crate) fn written(&self) -> &[u8] {
        self.bytes.as_ref().get(..self.len).unwrap_or_default()
    }

    /// The number of bytes that still fit.
    pub(crate) fn room(&self) -> usize {
        self.bytes.as_ref().len() - self.len
    }

    /// Appends a piece. Bytes that do not fit are left out, so that this cannot panic.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let free = self.bytes.as_mut().get_mut(self.len..).unwrap_or_default();
        for (to, from) in free.iter_mut().zip(piece) {
            *to = *from;
        }
        self.len += piece.len().min(free.len());
    }

    /// Appends a piece, with an underscore in place of every byte that is not printable ASCII.
    pub(crate) fn push_clean(&mut self, piece: &[u8]) {
        for byte in piece {
            self.push(&[if byte.is_ascii_graphic() { *byte } else { b'_' }]);
        }
    }

    pub(crate) fn push_hex(&mut self, number: usize) {
        self.push(b"0x");
        self.push_digits(number, 16);
    }

    pub(crate) fn push_decimal(&mut self, number: usize) {
        self.push_digits(number, 10);
    }

    fn push_digits(&mut self, mut number: usize, radix: usize) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = *b"0123456789abcdef".get(number % radix).unwrap_or(&b'?');
            number /= radix;
            first -= 1;
            if number == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or_default());
    }
}
